// People who sign in: users and keys, made and taken away, and what who may less is offered.
import { SLOW_MS, heading, region } from '../walk.mjs';

/** Browsers write a line for every refused request; in this walk some are meant. */
const REFUSAL = /^(console: error: .*status of )?(401|409|422)\b/;
const NEW_PASSWORD = 'another long password';

const userOf = (walk) => `vera.${walk.walked.split(' ').at(-1)}.${walk.scheme}`;

/** The steps, on a platform whose admin has this password. */
export function administration(password) {
  async function refuseStrangers(page, walk) {
    const told = walk.expect.bind(walk);
    walk.expect = (holds, what) => told(holds || REFUSAL.test(what), what);
    await page.goto(new URL('jobs', walk.url).href);
    await page.getByRole('heading', { name: 'Sign in to StreamJoin' }).waitFor();
    await walk.look(page, 'sign-in');
    await signIn(page, 'admin', 'not the password');
    await page.getByRole('alert').getByText('the name or the password is wrong').waitFor();
    await walk.look(page, 'sign-in-refused');
    await signIn(page, 'admin', password);
    // The page that was asked for.
    await heading(page, 'Jobs');
    await page.getByText('No job yet').waitFor();
  }

  async function makeUser(page, walk) {
    await page.getByRole('link', { name: 'Users and keys' }).click();
    await heading(page, 'Users and keys');
    await page.getByRole('row', { name: /^admin you/ }).waitFor({ timeout: SLOW_MS });
    await page.getByRole('button', { name: 'New user…' }).focus();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill('Vera Viewer');
    await dialog.getByLabel('Password', { exact: false }).first().fill('long enough');
    await page.keyboard.press('Enter');
    await dialog.getByText('pattern').waitFor({ timeout: SLOW_MS });
    await dialog.getByRole('textbox', { name: 'Name' }).fill('admin');
    await page.keyboard.press('Enter');
    await dialog.getByText('there is a user "admin" already').waitFor({ timeout: SLOW_MS });
    await dialog.getByRole('textbox', { name: 'Name' }).fill(userOf(walk));
    await dialog.getByLabel('Password', { exact: false }).first().fill('short');
    await page.keyboard.press('Enter');
    await dialog.getByText('a password has 8 to 200 characters').waitFor({ timeout: SLOW_MS });
    await page.waitForTimeout(500);
    await walk.look(page, 'users-new');
    await dialog.getByLabel('Password', { exact: false }).first().fill('long enough');
    await page.keyboard.press('Enter');
    await page
      .getByRole('row', { name: userOf(walk) })
      .getByText('viewer')
      .waitFor({ timeout: SLOW_MS });
    await walk.look(page, 'users');
  }

  /** Somebody must be there who can let others in. */
  async function keepLastAdmin(page, walk) {
    await chooseFor(page, 'admin', 'Delete…');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await dialog.getByText('admin is the last admin who can log in').waitFor({ timeout: SLOW_MS });
    await page.waitForTimeout(500);
    await walk.look(page, 'users-last-admin');
    await dialog.getByRole('button', { name: 'Keep them' }).click();
  }

  async function giveRole(page, walk) {
    await chooseFor(page, userOf(walk), 'Change role…');
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('radio', { name: 'operator' }).check();
    await page.waitForTimeout(500);
    await walk.look(page, 'users-role');
    await dialog.getByRole('button', { name: 'Change', exact: true }).click();
    await page
      .getByRole('row', { name: userOf(walk) })
      .getByText('operator')
      .waitFor({ timeout: SLOW_MS });
    await chooseFor(page, userOf(walk), 'Change role…');
    await dialog.getByRole('radio', { name: 'viewer' }).check();
    await dialog.getByRole('button', { name: 'Change', exact: true }).click();
    await page
      .getByRole('row', { name: userOf(walk) })
      .getByText('viewer')
      .waitFor({ timeout: SLOW_MS });
  }

  /** Made, read once, used, seen to be used, revoked, and of no use any more. */
  async function makeAndRevokeKey(page, walk) {
    const name = `${walk.walked} ${walk.scheme}`;
    await region(page, 'API keys').getByRole('button', { name: 'New key…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
    await dialog.getByRole('radio', { name: 'operator' }).check();
    await page.waitForTimeout(500);
    await walk.look(page, 'keys-new');
    await dialog.getByRole('button', { name: 'Create key' }).click();
    await dialog.getByText('it is shown this once').waitFor({ timeout: SLOW_MS });
    const key = await dialog.locator('pre').textContent();
    walk.expect(/^sj_[\w-]{43}$/.test(key), `the key is "${key}"`);
    await page.keyboard.press('Escape');
    walk.expect(await dialog.isVisible(), 'a key is lost by a slip');
    await walk.look(page, 'keys-made');
    const status = async () => {
      // Without the cookie, which would do in its place.
      const answer = await fetch(new URL('api/v1/users/me', walk.url), { headers: { Authorization: `Bearer ${key}` } });
      return answer.status;
    };
    walk.expect((await status()) === 200, 'a new key does not open');
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = page.getByRole('row', { name });
    await row.getByText('never').waitFor({ timeout: SLOW_MS });
    await page.reload();
    await row.getByText(/ago/).nth(1).waitFor({ timeout: SLOW_MS });
    walk.expect(!(await page.content()).includes(key), 'a key is shown twice');
    await row.getByRole('button', { name: /^Revoke/ }).click();
    await dialog.getByText('opens nothing').waitFor({ timeout: SLOW_MS });
    await page.waitForTimeout(500);
    await walk.look(page, 'keys-revoke');
    await dialog.getByRole('button', { name: 'Revoke', exact: true }).click();
    await row.getByText('revoked').waitFor({ timeout: SLOW_MS });
    walk.expect((await status()) === 401, 'a revoked key opens');
    await walk.look(page, 'keys');
  }

  /** Saved queries are for everybody, and a name is for one of them. */
  async function keepQueries(page, walk) {
    const url = new URL('api/v1/saved-queries', walk.url).href;
    const question = { job: 'no job yet', where: 'price > 1' };
    const headers = { Origin: new URL(walk.url).origin };
    const kept = await page.request.post(url, {
      headers,
      data: { name: `mine ${walk.walked} ${walk.scheme}`, question },
    });
    walk.expect(kept.ok(), `a query is not kept: ${kept.status()}`);
  }

  async function viewer(page, walk) {
    await page.getByRole('button', { name: 'Sign out admin' }).click();
    await signIn(page, userOf(walk), 'long enough');
    await heading(page, 'Your account');
    const offered = await page.getByRole('button', { name: /user…/ }).count();
    walk.expect(offered === 0, 'a viewer is offered users');
    await region(page, 'API keys').getByText('No key yet').waitFor({ timeout: SLOW_MS });
    await region(page, 'API keys').getByRole('button', { name: 'New key…' }).click();
    const roles = await page.getByRole('dialog').getByRole('radio').count();
    walk.expect(roles === 1, `a viewer is offered keys with ${roles} roles`);
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('link', { name: 'Saved queries' }).click();
    const name = `mine ${walk.walked} ${walk.scheme}`;
    await page.getByRole('button', { name: `More to do with ${name}` }).click();
    await page.getByText('Its owner or an admin deletes it').waitFor({ timeout: SLOW_MS });
    walk.expect((await page.getByRole('menuitem', { name: 'Delete…' }).count()) === 0, 'a viewer is offered to delete');
    await page.keyboard.press('Escape');
    await walk.look(page, 'viewer-queries');
  }

  async function changeOwnPassword(page, walk) {
    await page.getByRole('link', { name: 'Your account' }).click();
    const panel = region(page, 'Password');
    const fill = async (before, after, again) => {
      await panel.getByLabel('Password until now').first().fill(before);
      await panel
        .getByLabel(/^New password(?! again)/)
        .first()
        .fill(after);
      await panel.getByLabel('New password again').first().fill(again);
    };
    await fill('not this one', NEW_PASSWORD, 'mistyped');
    await panel.getByText('this is another one').waitFor({ timeout: SLOW_MS });
    walk.expect(
      await panel.getByRole('button', { name: 'Change', exact: true }).isDisabled(),
      'a mistyped password is taken',
    );
    await fill('not this one', NEW_PASSWORD, NEW_PASSWORD);
    await page.keyboard.press('Enter');
    await panel.getByText('the old password is wrong').waitFor({ timeout: SLOW_MS });
    await walk.look(page, 'password');
    await fill('long enough', NEW_PASSWORD, NEW_PASSWORD);
    await page.keyboard.press('Enter');
    await panel.getByText('Changed.').waitFor({ timeout: SLOW_MS });
    await signOut(page, userOf(walk));
    await signIn(page, userOf(walk), NEW_PASSWORD);
    await heading(page, 'Your account');
    await signOut(page, userOf(walk));
    await page.reload();
    await page.getByRole('heading', { name: 'Sign in to StreamJoin' }).waitFor();
  }

  async function takeUserAway(page, walk) {
    await signIn(page, 'admin', password);
    await heading(page, 'Users and keys');
    const row = page.getByRole('row', { name: userOf(walk) });
    const dialog = page.getByRole('dialog');
    await chooseFor(page, userOf(walk), 'New password…');
    await dialog.getByLabel('New password').first().fill(userOf(walk));
    await page.keyboard.press('Enter');
    await dialog.getByText('a password is not the name of its user').waitFor({ timeout: SLOW_MS });
    await dialog.getByLabel('New password').first().fill('given by an admin');
    await page.keyboard.press('Enter');
    await dialog.waitFor({ state: 'detached', timeout: SLOW_MS });
    await chooseFor(page, userOf(walk), 'Disable…');
    await dialog.getByRole('button', { name: 'Disable', exact: true }).click();
    await row.getByText('no, is disabled').waitFor({ timeout: SLOW_MS });
    await walk.look(page, 'users-disabled');
    await chooseFor(page, userOf(walk), 'Delete…');
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached', timeout: SLOW_MS });
    await signOut(page, 'admin');
  }

  return [
    refuseStrangers,
    makeUser,
    keepLastAdmin,
    giveRole,
    makeAndRevokeKey,
    keepQueries,
    viewer,
    changeOwnPassword,
    takeUserAway,
  ];
}

async function signIn(page, name, password) {
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await page.getByLabel('Password', { exact: false }).first().fill(password);
  await page.keyboard.press('Enter');
}

async function signOut(page, name) {
  await page.getByRole('button', { name: `Sign out ${name}` }).click();
  await page.getByRole('heading', { name: 'Sign in to StreamJoin' }).waitFor();
}

async function chooseFor(page, user, item) {
  await page.getByRole('button', { name: `More to do with ${user}`, exact: true }).click();
  await page.getByRole('menuitem', { name: item }).click();
}
