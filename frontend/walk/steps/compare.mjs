// One query, and what every operator would make of it.
import { SLOW_MS, heading, region } from '../walk.mjs';

const OPERATORS = ['biclique', 'matrix', 'splitjoin', 'handshake', 'spark'];

/** The operator's row, and not one whose name only begins with it: spark is not spark-broadcast. */
const row = (page, operator) =>
  region(page, 'Side by side')
    .locator('tbody')
    .filter({ has: page.getByRole('rowheader', { name: new RegExp(`^${operator}(?![\\w-])`) }) });

export async function compare(page, walk) {
  await page.getByRole('link', { name: 'Compare', exact: true }).click();
  await heading(page, 'Compare operators');
  await page.getByRole('combobox', { name: 'Whose query' }).click();
  await page.getByRole('option', { name: 'of demo auctions', exact: true }).click();
  await row(page, 'biclique').getByText('hash routing').waitFor({ timeout: SLOW_MS });
  for (const operator of OPERATORS) await row(page, operator).waitFor({ timeout: SLOW_MS });
  await row(page, 'spark').getByText('Spark has no source for stream demo_').waitFor({ timeout: SLOW_MS });
  await row(page, 'biclique').getByText('measured by demo auctions').waitFor({ timeout: SLOW_MS });
  await region(page, 'With more slots').getByText('units follow the slots').waitFor({ timeout: SLOW_MS });
  await region(page, 'With more slots')
    .getByRole('img', { name: /splitjoin up to 64/ })
    .waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'compare');
}

/** By the keyboard: the most first. */
export async function sortOperators(page, walk) {
  const head = region(page, 'Side by side').getByRole('button', { name: 'Memory' });
  await head.focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  const first = await region(page, 'Side by side').locator('tbody').first().textContent();
  walk.expect(first.startsWith('matrix'), `of the most memory is ${first}`);
  const sorting = await page.locator('th[aria-sort="descending"]').textContent();
  walk.expect(sorting.startsWith('Memory'), `sorted by ${sorting}`);
}

/** A knob that is wrong, a routing that is dearer, and an order that not all give. */
export async function turnKnobs(page, walk) {
  const knobs = region(page, 'How they run');
  await knobs.getByRole('textbox', { name: 'Cores' }).fill('0');
  await knobs.getByRole('alert').getByText('0 is not a whole number').waitFor({ timeout: SLOW_MS });
  await row(page, 'splitjoin').getByText('cannot run it like this: 0 is not').waitFor({ timeout: SLOW_MS });
  await knobs.getByRole('combobox', { name: 'Routing' }).click();
  await page.getByRole('option', { name: 'random', exact: true }).click();
  await knobs.getByText('total', { exact: true }).click();
  await row(page, 'biclique').getByText('random routing').waitFor({ timeout: SLOW_MS });
  await row(page, 'spark')
    .getByText("cannot run it like this: Spark's stream-stream join gives its results in no order")
    .waitFor({ timeout: SLOW_MS });
  await row(page, 'handshake').getByText('up to total').waitFor({ timeout: SLOW_MS });
  await region(page, 'With more slots').getByText('Comparisons', { exact: true }).click();
  await region(page, 'With more slots').getByText('units follow the slots').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'compare-knobs');
}

export async function compareNothing(page, walk) {
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText('SELECT ONLINE nothing.at_all FROM nothing, demo_bids WITHIN 1 SECONDS');
  await page.getByText('there is no stream').waitFor({ timeout: SLOW_MS });
  await region(page, 'Side by side').getByText('Nothing to compare yet').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'compare-nothing');
}
