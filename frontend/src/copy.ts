/** Put a text on the clipboard. */
import { useRef, useState } from 'react';

const SHOWN_MS = 1_500;
const NOTHING = { copied: null, refused: null };

/** What people are told if the browser refuses. */
export const REFUSED = 'The browser refused to copy';

/** Also where the page is not on https, which browsers give no clipboard to. Rejected where the browser refuses. */
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
  const isCopied = document.execCommand('copy');
  area.remove();
  if (!isCopied) throw new Error('the browser does not copy');
}

/** What was copied just now, by its name, and what the browser refused to; null for nothing. */
export function useCopied() {
  const [last, setLast] = useState<{ copied: string | null; refused: string | null }>(NOTHING);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const tell = (found: Partial<typeof last>) => {
    clearTimeout(timer.current);
    setLast({ ...NOTHING, ...found });
    timer.current = setTimeout(() => setLast(NOTHING), SHOWN_MS);
  };
  const copy = (name: string, text: string) => {
    void copyText(text).then(
      () => tell({ copied: name }),
      () => tell({ refused: name }),
    );
  };
  return { ...last, copy };
}
