import "./node.js";

// After it: what was set last counts.
export * from "./inline.js";
