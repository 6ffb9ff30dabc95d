// What runs, the demos, the theme, and addresses that lead nowhere.
import { SLOW_MS, heading, region } from '../walk.mjs';

export async function overview(page, walk) {
  await page.goto(walk.url);
  await heading(page, 'Overview');
  await page.keyboard.press('Tab');
  walk.expect(
    (await page.evaluate(() => document.activeElement.textContent)) === 'Skip to the page',
    'the first stop of Tab is no skip link',
  );
  await region(page, 'Demos').getByRole('listitem').first().waitFor({ timeout: SLOW_MS });
  await walk.look(page, 'overview');
}

/** The first time by the keyboard alone; afterwards its job is there. */
export async function openDemo(page) {
  const demo = region(page, 'Demos').getByRole('listitem').filter({ has: page.getByText('Bids that win', { exact: true }) });
  const start = demo.getByRole('button', { name: /^Start/ });
  if (await start.isVisible()) {
    await start.focus();
    await page.keyboard.press('Enter');
  } else {
    await demo.getByRole('link').click();
  }
  await heading(page, 'demo auctions');
}

export async function strayAddresses(page, walk) {
  await page.goto(new URL('nowhere', walk.url).href);
  await heading(page, 'No such page');
  await walk.look(page, 'no-such-page');
}

export async function switchTheme(page, walk) {
  const other = walk.scheme === 'dark' ? 'light' : 'dark';
  await page.getByRole('button', { name: `Switch to the ${other} theme` }).click();
  const shown = await page.evaluate(() => document.documentElement.dataset.mantineColorScheme);
  walk.expect(shown === other, `the theme is ${shown} after a switch to ${other}`);
}
