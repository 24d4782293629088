/** Buttons that copy a text or save a file. */

import { make } from "./dom.js";

const SAID_FOR_MS = 2000;

/** Returns a button that copies a text. */
export function copyButton(name: string, text: string): HTMLButtonElement {
  // `ariaLive` makes screen readers read the button's new name.
  const button = make("button", { type: "button", className: "small", ariaLive: "polite" }, name);
  button.addEventListener("click", async () => {
    button.textContent = (await copied(text, button)) ? "Copied" : "Not copied";
    setTimeout(() => (button.textContent = name), SAID_FOR_MS);
  });
  return button;
}

/** Returns a button that saves bytes as a file. */
export function saveButton(name: string, bytes: Uint8Array<ArrayBuffer>, file: string): HTMLButtonElement {
  const button = make("button", { type: "button", className: "small" }, name);
  button.addEventListener("click", () => {
    const href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    make("a", { href, download: file }).click();
    setTimeout(() => URL.revokeObjectURL(href), SAID_FOR_MS);
  });
  return button;
}

async function copied(text: string, button: HTMLButtonElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers deny the clipboard to pages from another machine without TLS, and users may deny it.
    const area = make("textarea", { value: text, className: "hidden", readOnly: true });
    button.after(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    button.focus();
    return isCopied;
  }
}
