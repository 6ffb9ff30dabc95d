// Groups that change in a real browser: their table and chart while they change, and a table that an as-of join reads.
//   node walk/groups.mjs URL CHROMIUM JOB [FOLDER FOR PICTURES]
import { SLOW_MS, heading, region, takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [job] = process.argv.splice(4, 1);

const KEPT = 11;
const BUSIEST = '1 2 3 4 5 6 7 8 9 10';

/** Twelve groups: ten change all the time, one never does, and one comes and goes. */
async function theirTable(page, walk) {
  await page.goto(`${walk.url}jobs/${job}`);
  const rows = page.getByRole('region', { name: 'Groups', exact: true }).locator('tbody tr[aria-rowindex]');
  const listed = async () => (await rows.allTextContents()).map((text) => text.split('upsert')[0]);
  const came = (count) => region(page, 'Results').getByText(new RegExp(`^${count} groups,`)).waitFor({ timeout: SLOW_MS });
  await came(KEPT + 1);
  await came(KEPT);
  walk.expect((await rows.count()) === KEPT, `a group that has ended is still in the table: ${await listed()}`);
  await came(KEPT + 1);
  const cells = () => rows.evaluateAll((all) => all.map((row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent)));
  const before = await cells();
  const firstCount = rows.first().locator('td').nth(1);
  await page.waitForFunction(([cell, was]) => cell.textContent !== was, [await firstCount.elementHandle(), before[0][1]]);
  const after = await cells();
  const moved = before.filter(([group], place) => after[place]?.[0] !== group && group !== '12');
  walk.expect(moved.length === 0, `groups moved: ${JSON.stringify(before)}, then ${JSON.stringify(after)}`);
  const still = (some) => some.find(([group]) => group === '11')?.[1];
  walk.expect(still(after) === '500' && still(before) === '500', `a group changed by itself: ${still(after)}`);
}

async function theirChart(page, walk) {
  const chart = page.getByRole('region', { name: 'Groups over event time' });
  await chart.locator('canvas').waitFor({ timeout: SLOW_MS });
  const groups = await chart.locator('figcaption li').evaluateAll((all) =>
    all.map((one) => one.firstElementChild.nextSibling.textContent.trim()).sort((one, other) => one - other),
  );
  walk.expect(groups.join(' ') === BUSIEST, `the chart has the groups ${groups.join(' ')}`);
  await chart.scrollIntoViewIfNeeded();
  await walk.look(page, 'job-groups');
}

/** A row that is NULL in all but its key ends it, once the stream says so. */
async function aTableThatChanges(page, walk) {
  await page.goto(`${walk.url}streams/rates`);
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await heading(page, 'Edit rates');
  await page.getByText('deletes, punctuations and load shedding').click();
  await page.getByRole('textbox', { name: 'Key that rows end' }).fill('item');
  await walk.look(page, 'stream-key');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await heading(page, 'rates');
  await region(page, 'Entry').getByText('version 2').waitFor({ timeout: SLOW_MS });
  const entry = await region(page, 'Entry').textContent();
  walk.expect(/deletes.*true/s.test(entry) && /key.*item/s.test(entry), `the entry is ${entry}`);

  await page.goto(`${walk.url}jobs/new`);
  await heading(page, 'New join');
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.insertText(
    'SELECT ONLINE orders.id, rates.item, rates.rate FROM orders ASOF LEFT JOIN rates\n' +
      'ON orders.item = rates.item AND orders.ts >= rates.ts',
  );
  const rows = page.getByRole('region', { name: 'Rows of the preview' }).locator('tbody tr');
  await rows.nth(2).waitFor({ timeout: SLOW_MS });
  const found = await rows.evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => cell.textContent).join(' ')));
  walk.expect(
    found.sort().join('; ') === '1 tea 5; 2 – –; 3 – –',
    `orders with the rate at their time: ${found.join('; ')}`,
  );
}

await takeWalk([theirTable, theirChart, aTableThatChanges]);
