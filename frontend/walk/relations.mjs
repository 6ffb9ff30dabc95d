// Relations in a real browser: one is registered, looked at, refreshed, changed and deleted, and versions are those of a job.
//   node walk/relations.mjs URL CHROMIUM FILE [FOLDER FOR PICTURES]
import { SLOW_MS, heading, takeWalk } from './walk.mjs';

// The rest is what every walk is given.
const [file] = process.argv.splice(4, 1);

async function registers(page, walk) {
  await page.goto(walk.url);
  await page.getByRole('link', { name: 'Relations', exact: true }).click();
  await heading(page, 'Relations');
  await page.getByRole('link', { name: 'Register a relation' }).first().click();
  await heading(page, 'Register a relation');
  await page.getByLabel('Name').fill('walked');
  await page.getByLabel('Path').fill(file);
  await page.getByLabel('Refresh').fill('10min');
  await page.getByRole('button', { name: 'Test', exact: true }).click();
  await page.getByRole('region', { name: 'Test', exact: true }).getByText('Ada').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'relation-new');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await heading(page, 'walked');
  await page.getByText('No job joins it').waitFor({ timeout: SLOW_MS });
  await page.getByRole('region', { name: 'Sample', exact: true }).getByText('Ada').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'relation-walked');
  await page.getByRole('button', { name: 'Refresh', exact: true }).click();
  await page.getByText('No running job joins it.').waitFor({ timeout: SLOW_MS });
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  await heading(page, 'Edit walked');
  walk.expect((await page.getByLabel('Path').inputValue()) === file, 'the entry is filled in');
  await page.getByLabel('Refresh').fill('1h');
  await walk.look(page, 'relation-edit');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await heading(page, 'walked');
  await page.getByText('every 1h').first().waitFor({ timeout: SLOW_MS });
  walk.gone.push('/relations/walked');
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
  await heading(page, 'Relations');
  await page.getByRole('link', { name: 'walked' }).waitFor({ state: 'detached', timeout: SLOW_MS });
}

async function versions(page, walk) {
  await page.getByRole('link', { name: 'customers' }).click();
  await heading(page, 'customers');
  const panel = page.getByRole('region', { name: 'Versions in jobs' });
  await panel.getByText('No newer version: customers has no files any more').waitFor({ timeout: SLOW_MS });
  const rows = await panel.locator('tbody tr').allTextContents();
  walk.expect(rows.length === 2 && /^2.*in use$/.test(rows[0]) && /^1.*removed$/.test(rows[1]), rows.join('; '));
  await walk.look(page, 'relation');
  await panel.getByRole('link', { name: 'named' }).click();
  await page.getByRole('region', { name: 'Relations', exact: true }).getByText('in use').waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'job-relations');
}

await takeWalk([registers, versions]);
