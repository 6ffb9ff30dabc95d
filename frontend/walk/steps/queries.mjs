// Questions that are kept: asked again, taken home, kept once more, and forgotten.
import { readFile } from 'node:fs/promises';
import { SLOW_MS, heading, region } from '../walk.mjs';

const nameOf = (walk) => `dear bids, ${walk.walked} ${walk.scheme}`;

/** Kept by the API: the page where people keep them has a step of its own. */
export async function keepQuery(page, walk) {
  const question = { job: 'demo auctions', where: 'price > 1000000', limit: 100 };
  const kept = await page.request.post(new URL('api/v1/saved-queries', walk.url).href, {
    data: { name: nameOf(walk), question },
  });
  walk.expect(kept.ok(), `a query is not kept: ${kept.status()}`);
}

export async function askAgain(page, walk) {
  await page.getByRole('link', { name: 'Saved queries', exact: true }).click();
  await heading(page, 'Saved queries');
  const row = page.getByRole('row', { name: nameOf(walk) });
  await row.getByText('where price > 1000000').waitFor({ timeout: SLOW_MS });
  await row.getByRole('button', { name: /^Ask again/ }).focus();
  await page.keyboard.press('Enter');
  const rows = page.getByRole('region', { name: 'Answer', exact: true }).locator('tbody tr[aria-rowindex]');
  await rows.first().waitFor({ timeout: SLOW_MS });
  const prices = await rows.locator('td:nth-child(3)').allTextContents();
  walk.expect(
    prices.every((price) => Number(price) > 1_000_000),
    `asked for dear bids, got ${prices.join(', ')}`,
  );
  await walk.look(page, 'queries');
  const [file] = await Promise.all([
    page.waitForEvent('download', { timeout: SLOW_MS }),
    row
      .getByRole('button', { name: /^More to do/ })
      .click()
      .then(() => page.getByRole('menuitem', { name: 'Export as csv' }).click()),
  ]);
  const text = await readFile(await file.path(), 'utf8');
  walk.expect(text.startsWith('"auction","bidder","price"'), `the export begins with ${text.slice(0, 60)}`);
}

/** A copy, of which only the name is another. */
export async function keepCopy(page, walk) {
  await region(page, `Answer: ${nameOf(walk)}`)
    .getByRole('button', { name: 'Save a copy…' })
    .click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox', { name: 'Name' }).fill(`copy of ${nameOf(walk)}`);
  await page.waitForTimeout(500);
  await walk.look(page, 'queries-save');
  await page.keyboard.press('Enter');
  await dialog.getByText('is saved').waitFor({ timeout: SLOW_MS });
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByRole('rowheader', { name: `copy of ${nameOf(walk)}` }).waitFor({ timeout: SLOW_MS });
}

/** Both, so that nothing is left; the dialog's first choice keeps them. */
export async function forgetQueries(page, walk) {
  for (const name of [nameOf(walk), `copy of ${nameOf(walk)}`]) {
    await page.getByRole('button', { name: `More to do with ${name}` }).click();
    await page.getByRole('menuitem', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Nobody can ask it').waitFor({ timeout: SLOW_MS });
    await page.waitForTimeout(500);
    await walk.look(page, 'queries-delete');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByRole('rowheader', { name, exact: true }).waitFor({ state: 'detached', timeout: SLOW_MS });
  }
}
