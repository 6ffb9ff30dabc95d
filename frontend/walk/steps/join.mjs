// A new join: a template, a mistake that is still there after another page, its cure, some rows, and the job made of it.
import { SLOW_MS, heading } from '../walk.mjs';

const WRONG =
  'SELECT ONLINE demo_bids.nothing\nFROM demo_bids, demo_auctions\nWHERE demo_bids.auction = demo_auctions.id\nWITHIN 10 SECONDS';
const RIGHT = WRONG.replace('demo_bids.nothing', 'demo_bids.price, demo_auctions.reserve');

export async function newJoin(page, walk) {
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await heading(page, 'New join');
  await page.getByText('Before it can be created: write a query').waitFor({ timeout: SLOW_MS });
  walk.expect((await page.getByRole('alert').count()) === 0, 'an untouched page shows a mistake');
  await page.getByRole('combobox', { name: 'First stream' }).selectOption('demo_auctions');
  await page.getByRole('combobox', { name: 'Second stream' }).selectOption('demo_bids');
  await page.getByRole('button', { name: 'Equal keys' }).click();
  const editor = page.getByRole('textbox', { name: 'Query' });
  await editor.getByText('demo_auctions.id = demo_bids.auction').waitFor({ timeout: SLOW_MS });
  const rows = page.getByRole('region', { name: 'Rows of the preview' }).locator('tbody tr');
  await rows.first().waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'join-template');
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(WRONG);
  await page.getByText('Line 1, column 15: there is no column').waitFor({ timeout: SLOW_MS });
  const underlined = await page.locator('.cm-lintRange-error').first().textContent();
  walk.expect(underlined === 'demo_bids.nothing', `"${underlined}" is underlined`);
  await walk.look(page, 'join-mistake');
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await heading(page, 'Jobs');
  await page.getByRole('link', { name: 'New join', exact: true }).first().click();
  await page.getByText('Line 1, column 15: there is no column').waitFor({ timeout: SLOW_MS });
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.insertText(RIGHT);
  await page.getByRole('radio', { name: 'matrix' }).waitFor({ timeout: SLOW_MS });
  await rows.first().waitFor({ timeout: SLOW_MS });
  await page.getByRole('heading', { name: 'Explain' }).evaluate((heading) => heading.scrollIntoView());
  await walk.look(page, 'join');
  await page.getByText('Slots, batches, and running until the end').click();
  await page.getByRole('textbox', { name: 'Slots' }).waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'join-settings');
  await page.getByRole('checkbox', { name: 'Start at once' }).uncheck();
  await page.getByRole('textbox', { name: 'Name' }).fill(`${walk.walked} ${walk.scheme}`);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await heading(page, `${walk.walked} ${walk.scheme}`);
  await page.getByText('The job does not run').waitFor({ timeout: SLOW_MS });
}
