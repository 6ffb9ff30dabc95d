// Ways to a file besides typing its path: browsing and uploading, by keyboard and by dropping.
import { SLOW_MS, heading, refused } from '../walk.mjs';

const ROWS = 'id,at\n1,2026-01-01T00:00:00Z\n2,2026-01-01T00:00:01Z\n';

export async function chooseFiles(page, walk) {
  const name = `${walk.walked.replaceAll(' ', '-')}.csv`;
  await page.getByRole('link', { name: 'Streams', exact: true }).click();
  await page.getByRole('link', { name: 'Register a stream' }).first().click();
  await heading(page, 'Register a stream');
  const path = page.getByRole('textbox', { name: 'Path' });
  await drop(page, name, ROWS);
  await page.getByText(`${name} is uploaded`).waitFor({ timeout: SLOW_MS });
  walk.expect((await path.inputValue()) === `upload:${name}`, 'a dropped file does not fill the path');
  walk.expect((await page.getByRole('combobox', { name: 'Format' }).inputValue()) === 'csv', 'its format is not taken');
  await page.getByRole('button', { name: /^Test/ }).click();
  await page.getByRole('button', { name: 'Use at as the event time' }).click();
  await page.getByText('The first 2 of 2 rows').waitFor({ timeout: SLOW_MS });
  await refused(page, walk, 409, async () => {
    await drop(page, name, `${ROWS}3,2026-01-01T00:00:02Z\n`);
    await page.getByRole('alert').getByText('already, with other content').waitFor({ timeout: SLOW_MS });
  });
  await walk.look(page, 'stream-upload-refused');

  const browse = page.getByRole('button', { name: 'Browse…' });
  await browse.focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Choose a file or folder' });
  await dialog.getByRole('region', { name: 'Files and folders' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'browse');
  // The focus is in the list, whose first entry is the uploads and whose second is a folder.
  await page.keyboard.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Use this folder' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'browse-folder');
  await dialog.getByRole('button', { name: 'Up', exact: true }).focus();
  await page.keyboard.press('Enter');
  await dialog.getByRole('button', { name: 'Uploaded files' }).click();
  const removal = dialog.getByRole('button', { name: `Remove ${name}` });
  await removal.waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'browse-uploads');
  await removal.click();
  await removal.waitFor({ state: 'detached', timeout: SLOW_MS });
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached', timeout: SLOW_MS });
  const focused = await page.evaluate(() => document.activeElement?.textContent?.slice(0, 50));
  walk.expect(focused === 'Browse…', `the focus is on "${focused}" after the dialog`);
}

/** A file that is dropped on the fields of files. */
async function drop(page, name, text) {
  const dataTransfer = await page.evaluateHandle(
    ([called, content]) => {
      const data = new DataTransfer();
      data.items.add(new File([content], called, { type: 'text/csv' }));
      return data;
    },
    [name, text],
  );
  await page.getByRole('textbox', { name: 'Path' }).dispatchEvent('drop', { dataTransfer });
}
