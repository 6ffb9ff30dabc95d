// A job that runs: what it shows, and what it is asked.
import { readFile } from 'node:fs/promises';
import { SLOW_MS, SPARK_MS, heading, refused, region } from '../walk.mjs';

export async function job(page, walk) {
  const rows = page.getByRole('region', { name: 'Newest results' }).locator('tbody tr[aria-rowindex]');
  await rows.first().waitFor({ timeout: SPARK_MS });
  await page.locator('canvas').nth(3).waitFor({ timeout: SPARK_MS });
  await region(page, 'Units').getByText('R0', { exact: true }).waitFor({ timeout: SLOW_MS });
  await page.getByRole('img', { name: /snapshots with/ }).waitFor({ timeout: SLOW_MS });
  await page.waitForTimeout(3_000);
  await walk.look(page, 'job');

  const results = region(page, 'Results');
  await results.getByRole('button', { name: 'Pause' }).click();
  // What came before the button is drawn with it.
  await results.getByRole('button', { name: /^Go on/ }).waitFor({ timeout: SLOW_MS });
  const before = await rows.first().textContent();
  await results.getByRole('button', { name: /^Go on, .+ wait$/ }).waitFor({ timeout: SLOW_MS });
  walk.expect((await rows.first().textContent()) === before, 'a paused tail moves');
  await results.getByRole('button', { name: /^Go on/ }).click();

  await results.getByRole('textbox', { name: 'Only results where' }).fill('prize > 1');
  await page.keyboard.press('Enter');
  await results.getByRole('alert').getByText('prize').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'job-wrong-filter');
  await results.getByRole('textbox', { name: 'Only results where' }).fill('price > 1000000');
  await page.keyboard.press('Enter');
  await rows.first().waitFor({ timeout: SLOW_MS });
  const prices = await rows.locator('td:nth-child(3)').allTextContents();
  walk.expect(
    prices.every((price) => Number(price) > 1_000_000),
    `the filter lets ${prices.join(', ')} through`,
  );
}

/** An answer page by page, and a mistake that takes nothing away. */
export async function askPages(page, walk) {
  await page.getByRole('tab', { name: 'Ask' }).click();
  const asking = region(page, 'Ask kept results');
  await page.getByRole('textbox', { name: 'Rows per page' }).fill('3');
  await asking.getByRole('button', { name: 'Ask', exact: true }).click();
  await asking.getByText(/^3 rows, and there are more/).waitFor({ timeout: SLOW_MS });
  await asking.getByRole('button', { name: 'Next page' }).click();
  await asking.getByText(/^rows 4 to 6, and there are more/).waitFor({ timeout: SLOW_MS });
  await refused(page, walk, 422, async () => {
    await page.getByRole('textbox', { name: 'Where' }).fill('prize > 1');
    await page.keyboard.press('Enter');
    await asking.getByRole('alert').getByText('prize').waitFor({ timeout: SLOW_MS });
  });
  walk.expect(await asking.getByText(/^rows 4 to 6/).isVisible(), 'a question that fails takes the answer away');
  await page.getByRole('textbox', { name: 'Where' }).fill('');
  await page.getByRole('textbox', { name: 'Rows per page' }).fill('200');
}

export async function ask(page, walk) {
  await page.getByRole('textbox', { name: 'Where' }).fill('price > 1000');
  await page.getByRole('textbox', { name: 'Key' }).fill('1003');
  await page.keyboard.press('Enter');
  const answer = page.getByRole('region', { name: 'Answer' });
  await answer.locator('tbody tr[aria-rowindex]').first().waitFor({ timeout: SLOW_MS });
  const keys = await answer.locator('tbody td:nth-child(1)').allTextContents();
  walk.expect(
    keys.filter(Boolean).every((key) => key === '1003'),
    `asked for key 1003, got ${keys.join(', ')}`,
  );
  await walk.look(page, 'job-ask');
  const [file] = await Promise.all([
    page.waitForEvent('download', { timeout: SLOW_MS }),
    page
      .getByRole('button', { name: 'Export' })
      .click()
      .then(() => page.getByRole('menuitem', { name: 'All of it as csv' }).click()),
  ]);
  const text = await readFile(await file.path(), 'utf8');
  walk.expect(
    text.startsWith('"auction","bidder","price","reserve","bid_at"'),
    `the export begins with ${text.slice(0, 60)}`,
  );
  for (const tab of ['Events', 'Definition']) {
    await page.getByRole('tab', { name: tab }).click();
    await region(page, tab === 'Events' ? 'Events' : 'Query').waitFor({ timeout: SLOW_MS });
    await walk.look(page, `job-${tab.toLowerCase()}`);
  }
}

/** What processes wrote: while all is well, a driver says what its start took, and Spark may be silent. */
export async function logs(page, walk) {
  await page.getByRole('tab', { name: 'Logs' }).click();
  const panel = region(page, 'Logs');
  await panel.getByText('Spark', { exact: true }).click();
  await panel.getByText('Driver', { exact: true }).click();
  const entries = page.getByRole('region', { name: 'Entries of the log' }).getByRole('listitem');
  await entries.first().waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'job-logs');
  await panel.getByRole('textbox', { name: 'Lines with this text' }).fill('first batch');
  await entries.locator('mark').first().waitFor({ timeout: SLOW_MS });
  walk.expect((await entries.locator('mark').first().textContent()) === 'first batch', 'what is sought is not marked');
  const [file] = await Promise.all([
    page.waitForEvent('download', { timeout: SLOW_MS }),
    panel.getByRole('button', { name: 'Download' }).click(),
  ]);
  const text = await readFile(await file.path(), 'utf8');
  walk.expect(/^(\{.*first batch.*\}\n)+$/.test(text), `the download is ${text.slice(0, 80)}`);
  await panel.getByRole('combobox', { name: 'Level' }).selectOption('Errors');
  await panel.getByText('No entry is like that').waitFor({ timeout: SLOW_MS });
  await panel.getByRole('button', { name: 'Pause' }).click();
  await panel.getByRole('button', { name: 'Go on' }).click();
}

/** A change of a job that runs, which would cost its state: it is shown, and not done. */
export async function costlyChange(page, walk) {
  await page.getByRole('tab', { name: 'Change' }).click();
  const preview = region(page, 'What it would do');
  await region(page, 'Operator').getByRole('combobox', { name: 'Name' }).selectOption('matrix');
  await preview.getByText('The job begins anew').waitFor({ timeout: SLOW_MS });
  const apply = preview.getByRole('button', { name: 'Apply and restart' });
  walk.expect(await apply.isDisabled(), 'state can be lost without a word');
  await preview.getByRole('checkbox', { name: 'Begin anew, without the state' }).check();
  walk.expect(await apply.isEnabled(), 'who agrees cannot go on');
  await walk.look(page, 'job-change-anew');
  await page.getByRole('tab', { name: 'Live' }).click();
  await page.getByRole('tab', { name: 'Change' }).click();
  await preview.getByText('operator.name').waitFor({ timeout: SLOW_MS });
  await preview.getByRole('button', { name: 'Discard' }).click();
  await preview.getByText('Nothing is changed yet').waitFor({ timeout: SLOW_MS });
}

/** What follows looks at no running job, and one that runs takes a core. */
export async function stopJob(page) {
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.getByRole('link', { name: 'demo auctions' }).click();
  await heading(page, 'demo auctions');
  await page.getByRole('button', { name: 'Stop', exact: true }).click();
  await page.getByRole('button', { name: 'Start', exact: true }).waitFor({ timeout: SLOW_MS });
}

/** A mistake at its field, the right change, somebody else's in between, and then it is applied. */
export async function changeJob(page, walk) {
  await page.getByRole('tab', { name: 'Change' }).click();
  const preview = region(page, 'What it would do');
  const field = (name) => page.getByRole('textbox', { name, exact: true });
  const apply = preview.getByRole('button', { name: 'Apply', exact: true });
  // The API says what is wrong with a change, so a mistake is a request that is refused.
  await refused(page, walk, 422, async () => {
    await field('r_units').fill('many');
    await region(page, 'Operator').getByText('"many" is not a whole number').waitFor({ timeout: SLOW_MS });
    await preview.getByText('It is refused').waitFor({ timeout: SLOW_MS });
    walk.expect(await apply.isDisabled(), 'a mistake can be applied');
    await field('r_units').fill('');
    await field('Window').fill('20 PARSECS');
    await region(page, 'Query').getByText(/^Line 4, column/).waitFor({ timeout: SLOW_MS });
    await walk.look(page, 'job-change-wrong');

    await field('Window').fill('20 SECONDS');
    await field('Slots').fill('3');
    await preview.getByText('run.slots').waitFor({ timeout: SLOW_MS });
  });
  walk.expect((await preview.locator('ins').allTextContents()).join() === '20,3', 'the change is not shown as it is');
  await walk.look(page, 'job-change');

  const id = new URL(page.url()).pathname.split('/').pop();
  const other = await page.request.patch(new URL(`api/v1/jobs/${id}`, walk.url).href, {
    headers: { 'If-Match': '*' },
    data: { run: { heartbeat: '2s' } },
  });
  walk.expect(other.ok(), `the other change was answered with ${other.status()}`);
  await preview.getByText('This job was changed meanwhile').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'job-change-meanwhile');
  await preview.getByRole('button', { name: 'Load what is there now' }).click();
  walk.expect((await field('Heartbeat').inputValue()) === '2s', 'what is there now was not loaded');
  walk.expect((await field('Slots').inputValue()) === '3', 'what was typed is lost');
  await apply.click();
  await preview.getByText('Version 3 is in place').waitFor({ timeout: SLOW_MS });
}

/** Two versions side by side, and the way back to the first: by the keyboard. */
export async function revisions(page, walk) {
  await page.getByRole('tab', { name: 'Revisions' }).click();
  const versions = region(page, 'Versions');
  await versions.getByRole('radio', { name: 'Version 1 as before' }).check();
  await versions.getByText('From version 1 to 3').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'job-revisions');
  await versions.getByRole('button', { name: 'Go back to version 1' }).focus();
  await page.keyboard.press('Enter');
  const preview = region(page, 'What it would do');
  await preview.getByText('run.heartbeat').waitFor({ timeout: SLOW_MS });
  const apply = preview.getByRole('button', { name: 'Apply', exact: true });
  await apply.click({ trial: true });
  await apply.focus();
  await page.keyboard.press('Enter');
  await preview.getByText('Version 4 is in place').waitFor({ timeout: SLOW_MS });
}

/** A query beside the job's own: wrong at first, then started, and stopped. */
export async function queriesBeside(page, walk) {
  await page.getByRole('tab', { name: 'Definition' }).click();
  await region(page, 'Query').getByRole('button', { name: 'Start another beside it…' }).click();
  const dialog = page.getByRole('dialog');
  const start = dialog.getByRole('button', { name: 'Start', exact: true });
  await refused(page, walk, 422, async () => {
    await dialog.getByRole('textbox', { name: 'Name' }).fill('dear');
    await dialog.getByRole('textbox', { name: 'Query' }).click();
    await page.keyboard.press('Control+End');
    await page.keyboard.insertText('X');
    await dialog.getByText(/^Line 4, column/).waitFor({ timeout: SLOW_MS });
  });
  walk.expect(await start.isDisabled(), 'a query that is wrong can be started');
  await walk.look(page, 'job-query-wrong');
  await dialog.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('Backspace');
  await dialog.getByText('it fits what is stored').waitFor({ timeout: SLOW_MS });
  await start.click();
  await region(page, 'Query dear').waitFor({ timeout: SLOW_MS });
  await dialog.waitFor({ state: 'detached', timeout: SLOW_MS });
  await walk.look(page, 'job-queries');
  await region(page, 'Query dear').getByRole('button', { name: 'Stop…' }).click();
  await dialog.getByRole('button', { name: 'Stop it' }).click();
  await region(page, 'Query dear').getByText('stopped; its results are kept').waitFor({ timeout: SLOW_MS });
}

/** With the arrow keys to an item of an open menu, which takes the focus a moment after it opened. */
async function downTo(page, walk, item) {
  const focused = () => page.evaluate(() => document.activeElement?.textContent);
  for (let pressed = 0; pressed < 10 && (await focused()) !== item; pressed += 1) {
    const before = await focused();
    await page.keyboard.press('ArrowDown');
    const moved = (was) => document.activeElement?.textContent !== was;
    await page.waitForFunction(moved, before, { timeout: 5_000 }).catch(() => undefined);
  }
  walk.expect((await focused()) === item, `arrow keys do not reach ${item}`);
}

/** By the keyboard, out of the menu. */
export async function deleteJob(page, walk) {
  await page.getByRole('button', { name: 'More to do with this job' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('menuitem', { name: 'Delete…' }).waitFor({ timeout: SLOW_MS });
  await downTo(page, walk, 'Delete…');
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor({ timeout: SLOW_MS });
  await page.waitForTimeout(500);
  await walk.look(page, 'delete');
  walk.gone.push(new URL(page.url()).pathname);
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await heading(page, 'Jobs');
}
