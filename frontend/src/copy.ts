/** Put a text on the clipboard; also where the page is not on https, which browsers give no clipboard to. */
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
