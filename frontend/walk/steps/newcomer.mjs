// The steps of a newcomer, as the first screen of README.md tells them. They type what only they know: how far apart in time
// rows belong together, and a name for the join.
import { join } from 'node:path';
import { SLOW_MS, SPARK_MS, heading, region } from '../walk.mjs';

const BROKEN = '2 of 4 CSV fields; field "amount" is missing';

/** Everything that says that something is wrong, whenever it was on the screen. */
async function noted(page) {
  await page.addInitScript(() => {
    const wrong = '[role="alert"], [aria-invalid="true"]';
    globalThis.saidWrong = [];
    const note = (element) => globalThis.saidWrong.push(`${element.tagName}: ${element.textContent}`.slice(0, 300));
    new MutationObserver((records) => {
      for (const { target, type, addedNodes } of records) {
        if (type === 'attributes' && target.matches(wrong)) note(target);
        for (const node of addedNodes) {
          if (!(node instanceof Element)) continue;
          if (node.matches(wrong)) note(node);
          node.querySelectorAll(wrong).forEach(note);
        }
      }
    }).observe(document, {
      subtree: true,
      childList: true,
      attributes: true,
      attributeFilter: ['aria-invalid', 'role'],
    });
  });
}

/** Nothing says so but what is `told` of the broken row. */
async function nothingWrong(page, walk, where, told = '') {
  const said = await page.evaluate(() => globalThis.saidWrong.splice(0));
  walk.expect(said.length === 0, `${where}: ${said.join('; ')}`);
  const whole = await page.locator('body').innerText();
  walk.expect(whole.includes(told), `${where}: "${told}" is not on the screen`);
  const text = told === '' ? whole : whole.replace(told, '');
  const found = text.match(/.*\b(errors?|failed|fails|is wrong|cannot|refused)\b.*/i);
  walk.expect(found === null, `${where}: "${found?.[0]}" is on the screen`);
}

export async function opening(page, walk) {
  await noted(page);
  await page.goto(walk.url);
  await heading(page, 'Overview');
  await nothingWrong(page, walk, 'the first page');
}

export const registerOrders = (page, walk) => register(page, walk, 'orders', true);
export const registerPayments = (page, walk) => register(page, walk, 'payments', false);

/** Uploaded, tested, and registered with what is proposed. */
async function register(page, walk, name, isBroken) {
  await page.getByRole('link', { name: 'Streams', exact: true }).click();
  await page.getByRole('link', { name: 'Register a stream' }).first().click();
  await heading(page, 'Register a stream');
  await page.getByLabel('File to upload').setInputFiles(join(walk.pictures, `${name}.csv`));
  await page.getByText(`${name}.csv is uploaded`).waitFor({ timeout: SLOW_MS });
  const path = await page.getByRole('textbox', { name: 'Path' }).inputValue();
  walk.expect(path === `upload:${name}.csv`, `the path is ${path}`);
  const called = await page.getByRole('textbox', { name: 'Name', exact: true }).inputValue();
  walk.expect(called === name, `the name is ${called}`);
  await page.getByRole('button', { name: /^Test/ }).click();
  await page.getByText(/^The first \d+ of \d+ rows$/).waitFor({ timeout: SLOW_MS });
  const bad = await region(page, 'Bad records').getByText(BROKEN).count();
  walk.expect(bad === (isBroken ? 1 : 0), `the test of ${name} shows ${bad} broken rows`);
  await page.getByRole('button', { name: 'Use at as the event time' }).click();
  walk.expect(
    (await page.getByRole('combobox', { name: 'Column', exact: true }).inputValue()) === 'at',
    'the proposed event time is not taken',
  );
  await nothingWrong(page, walk, `before ${name} is registered`);
  if (isBroken) await walk.picture(page, 'register');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await heading(page, name);
  await page.getByRole('region', { name: 'Sample rows' }).locator('tbody tr').first().waitFor({ timeout: SLOW_MS });
  await nothingWrong(page, walk, `the page of ${name}`);
}

export async function newJoin(page, walk) {
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await heading(page, 'New join');
  await nothingWrong(page, walk, 'an untouched join');
  await page.getByRole('button', { name: 'Equal keys' }).click();
  const preview = region(page, 'Preview').locator('p[role="status"]');
  await preview.filter({ hasText: 'No row: no two rows with equal keys' }).waitFor({ timeout: SLOW_MS });
  walk.expect(
    (await preview.innerText()).endsWith('are within 10 s; within 20 s there are some.'),
    `the preview says: ${await preview.innerText()}`,
  );
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.press('Control+End');
  await page.keyboard.press('Shift+Home');
  await page.keyboard.insertText('WITHIN 1 HOUR');
  await preview.filter({ hasText: '20 rows' }).waitFor({ timeout: SLOW_MS });
  const first = await region(page, 'Preview').locator('tbody tr').first().innerText();
  walk.expect(/ada\s+1\s+card/.test(first), `the first row of the preview is ${first}`);
  await nothingWrong(page, walk, 'a join with a preview', '1 that cannot be read');
  await page.getByRole('radio', { name: 'matrix' }).waitFor({ timeout: SLOW_MS });
  await page.getByRole('textbox', { name: 'Name', exact: true }).fill('paid orders');
}

export async function create(page, walk) {
  await page.getByRole('button', { name: 'Create and start' }).click();
  await heading(page, 'paid orders');
  await nothingWrong(page, walk, 'the page of a job that starts');
}

export async function rows(page, walk) {
  const results = page.getByRole('region', { name: 'Newest results' }).locator('tbody tr[aria-rowindex]');
  await results.first().waitFor({ timeout: SPARK_MS });
  const texts = await results.allInnerTexts();
  walk.expect(
    texts.some((text) => text.includes('ada') && text.includes('card')),
    `no row joins ada with her card: ${texts.slice(0, 3).join(' | ')}`,
  );
  await nothingWrong(page, walk, 'the page of a job that runs');
}

/** The broken row, with its place. */
export async function rejected(page, walk) {
  await page.getByText(/\b1 unreadable\b/).first().waitFor({ timeout: SLOW_MS });
  const { origin } = new URL(walk.url);
  const jobs = await (await page.request.get(`${origin}/api/v1/jobs`)).json();
  const { counts, data } = await (await page.request.get(`${origin}/api/v1/jobs/${jobs.data[0].id}/rejected`)).json();
  const [row] = data;
  walk.expect(
    counts.length === 1 && counts[0].rows === 1 && data.length === 1,
    `there is more or less than one rejected row: ${JSON.stringify({ counts, data })}`,
  );
  walk.expect(
    row?.source === 'orders.csv' && row.position === 4 && row.record.trimEnd() === '3,cyd',
    `the rejected row is another one: ${JSON.stringify(row)}`,
  );
  await nothingWrong(page, walk, 'the page of a job with a rejected row');
  await walk.picture(page, 'job');
  await page.getByRole('tab', { name: 'Rejected rows' }).click();
  const shown = page.getByRole('table', { name: 'Rejected rows', exact: true }).getByRole('row').nth(1);
  await shown.waitFor({ timeout: SLOW_MS });
  const cells = await shown.getByRole('cell').allInnerTexts();
  walk.expect(
    cells.includes('orders.csv, line 4') && cells.includes(BROKEN) && cells.at(-1) === '3,cyd',
    `the rejected row is shown as ${cells.join(' | ')}`,
  );
  await nothingWrong(page, walk, 'the end', 'the record cannot be taken apart');
  await walk.picture(page, 'rejected');
}
