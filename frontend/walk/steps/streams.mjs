// The lists of jobs and streams, one stream, and a stream's life: registered, tested, changed, posted into, deleted.
import { SLOW_MS, heading, refused, region } from '../walk.mjs';

export async function lists(page, walk) {
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await heading(page, 'Jobs');
  await page.getByRole('link', { name: 'demo auctions' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'jobs');
  await page.getByRole('link', { name: 'Streams', exact: true }).click();
  await heading(page, 'Streams');
  await page.getByRole('link', { name: 'demo_bids' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'streams');
  await page.getByRole('link', { name: 'demo_bids' }).click();
  await page.getByRole('region', { name: 'Sample rows' }).locator('tbody tr').first().waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'stream');
}

/** What a stream of this walk is called: names have no blanks. */
const called = (walk, what) => `${walk.walked.replaceAll(' ', '_')}_${walk.scheme}_${what}`;

/** What somebody else does to the platform meanwhile. */
async function elsewhere(page, walk, method, path, data, headers) {
  const answer = await page.request.fetch(new URL(`api/v1/${path}`, walk.url).href, { method, data, headers });
  walk.expect(answer.ok(), `${method} ${path}: ${answer.status()} ${await answer.text()}`);
}

const zipf = (rate) => ({ source: 'generator', kind: 'zipf.s', rate, time: 'ts' });

/** By the keyboard: a path that is wrong, then a generator, whose newest test counts. */
export async function registerStream(page, walk) {
  await elsewhere(page, walk, 'POST', 'streams', { name: called(walk, 's'), spec: zipf('100/s') });
  await page.getByRole('link', { name: 'Streams', exact: true }).click();
  await heading(page, 'Streams');
  await page.getByRole('link', { name: 'Register a stream' }).first().click();
  await heading(page, 'Register a stream');
  const path = page.getByRole('textbox', { name: 'Path' });
  await path.fill('/nowhere/at/all');
  await page.getByRole('combobox', { name: 'Column', exact: true }).fill('ts');
  await refused(page, walk, 422, async () => {
    await page.keyboard.press('Control+Enter');
    await page.locator('form').getByText('STREAMJOIN_ALLOWED_PATHS').waitFor({ timeout: SLOW_MS });
  });
  walk.expect((await path.getAttribute('aria-invalid')) === 'true', 'a path that is refused is not marked');
  await walk.look(page, 'stream-new-wrong');

  await page.getByRole('radio', { name: /^Files/ }).focus();
  for (let card = 0; card < 3; card += 1) await page.keyboard.press('ArrowRight');
  await page.getByRole('textbox', { name: 'Rate' }).fill('50/s');
  // The first answer is held back until the second is there.
  let release;
  await page.route(
    '**/streams/test',
    async (route) => {
      await new Promise((resolve) => (release = resolve));
      await route.continue();
    },
    { times: 1 },
  );
  await page.getByRole('button', { name: /^Test/ }).click();
  await page.getByRole('textbox', { name: 'Ends after' }).fill('77');
  await page.keyboard.press('Control+Enter');
  await page.getByText('The first 77 of 77 rows').waitFor({ timeout: SLOW_MS });
  release();
  await page.waitForTimeout(500);
  walk.expect(await page.getByText('The first 77 of 77 rows').isVisible(), 'an older test overwrites a newer one');
  await walk.look(page, 'stream-new');

  await page.getByText('JSON', { exact: true }).click();
  const editor = page.getByRole('textbox', { name: 'Entry as JSON' });
  await editor.click();
  await page.keyboard.press('Control+End');
  await page.keyboard.insertText(',');
  await page.getByText('Line 7, column 2: nothing may follow the end').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'stream-new-json');
  await page.keyboard.press('Backspace');
  await page.getByText('Form', { exact: true }).click();

  await page.getByRole('textbox', { name: 'Name', exact: true }).fill(called(walk, 's'));
  await refused(page, walk, 409, async () => {
    await page.getByRole('button', { name: 'Register', exact: true }).click();
    await page.getByText(`there is a stream "${called(walk, 's')}" already`).waitFor({ timeout: SLOW_MS });
  });
  // The name that is taken gets the focus.
  await page.waitForFunction(() => document.activeElement.getAttribute('aria-invalid') === 'true');
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(called(walk, 'r'));
  await page.keyboard.press('Enter');
  await heading(page, called(walk, 'r'));
}

/** While somebody else changes it, too. */
export async function editStream(page, walk) {
  const name = called(walk, 'r');
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await heading(page, `Edit ${name}`);
  await page.getByRole('textbox', { name: 'Rate' }).fill('60/s');
  await page.getByRole('textbox', { name: 'Allowed delay' }).fill('2s');
  await elsewhere(page, walk, 'PATCH', `streams/${name}`, { spec: { ...zipf('70/s'), rows: 77 } }, { 'If-Match': '*' });
  await refused(page, walk, 412, async () => {
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('It is at version 2 now, and you began with version 1').waitFor({ timeout: SLOW_MS });
  });
  await walk.look(page, 'stream-changed-meanwhile');
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  await heading(page, name);
  await region(page, 'Entry').getByText('version 3').waitFor({ timeout: SLOW_MS });
  await region(page, 'Entry').getByText('"60/s"').waitFor({ timeout: SLOW_MS });
}

export async function pushRows(page, walk) {
  const name = called(walk, 'pushed');
  const spec = { source: 'push', schema: { id: 'int64', ts: 'timestamp' }, time: 'ts' };
  await elsewhere(page, walk, 'POST', 'streams', { name, spec });
  await page.goto(new URL(`streams/${name}`, walk.url).href);
  await page.getByText('No row is there yet').waitFor({ timeout: SLOW_MS });
  const rows = page.getByRole('textbox', { name: 'Rows', exact: true });
  await rows.fill('{"id": 1, "ts": "2026-01-01T00:00:00Z"}\n{"id": }');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Line 2, column 8: a value is missing').waitFor({ timeout: SLOW_MS });
  await rows.fill('{"id": 1, "ts": "2026-01-01T00:00:00Z"}\n{"id": "one", "ts": "2026-01-01T00:00:01Z"}');
  await page.getByRole('textbox', { name: 'Name of these rows' }).fill('first');
  await page.keyboard.press('Enter');
  await page.getByText('2 rows posted').waitFor({ timeout: SLOW_MS });
  await page.getByRole('region', { name: 'Sample rows' }).locator('tbody tr').first().waitFor({ timeout: SLOW_MS });
  await region(page, 'Bad records').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'stream-push');
  await page.getByRole('button', { name: 'Post', exact: true }).click();
  await page.getByText('which were there already under this name').waitFor({ timeout: SLOW_MS });
}

/** A stream that a job reads stays; the others go. */
export async function deleteStreams(page, walk) {
  const [one, other] = [called(walk, 'r'), called(walk, 's')];
  const reader = `${walk.walked} ${walk.scheme} reader`;
  const query = `SELECT ONLINE ${one}.id FROM ${one}, ${other} WHERE ${one}.k = ${other}.k WITHIN 1 SECONDS`;
  await elsewhere(page, walk, 'POST', 'jobs', { name: reader, query });
  await page.goto(new URL(`streams/${one}`, walk.url).href);
  await region(page, 'Jobs that read it').getByRole('link', { name: reader }).waitFor({ timeout: SLOW_MS });
  const dialog = await openDelete(page);
  await refused(page, walk, 409, async () => {
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByText('delete those jobs first').waitFor({ timeout: SLOW_MS });
  });
  await walk.look(page, 'stream-delete');
  await elsewhere(page, walk, 'DELETE', `jobs/${encodeURIComponent(reader)}`);
  walk.gone.push(`/streams/${one}`, `/streams/${other}`, `/streams/${called(walk, 'pushed')}`);
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await heading(page, 'Streams');
  for (const name of [other, called(walk, 'pushed')]) {
    await page.getByRole('link', { name, exact: true }).click();
    await heading(page, name);
    const asked = await openDelete(page);
    await asked.getByRole('button', { name: 'Delete', exact: true }).click();
    await heading(page, 'Streams');
  }
  await page.getByRole('link', { name: other, exact: true }).waitFor({ state: 'detached', timeout: SLOW_MS });
}

async function openDelete(page) {
  await page.getByRole('button', { name: 'More to do with this stream' }).click();
  await page.getByRole('menuitem', { name: 'Delete…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.waitFor({ timeout: SLOW_MS });
  await page.waitForTimeout(500);
  return dialog;
}
