/** Put a text on the clipboard. */
import { useState } from 'react';

const SHOWN_MS = 1_500;

/** Also where the page is not on https, which browsers give no clipboard to. */
export async function copyText(text: string): Promise<void> {
  // Undefined there, whatever the types say.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard !== undefined) {
    await clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** What was copied just now, by its name; null for nothing. */
export function useCopied() {
  const [copied, setCopied] = useState<string | null>(null);
  const copy = (name: string, text: string) => {
    void copyText(text).then(() => {
      setCopied(name);
      setTimeout(() => setCopied(null), SHOWN_MS);
    });
  };
  return { copied, copy };
}
