import "./node.js";

// The import order matters: the last `setSource` wins.
export * from "./inline.js";
