/** Who may use the platform: one's own password and keys, and for admins everybody's. */
import { Code } from '@mantine/core';
import { Empty } from '../../components/Empty';
import { PageTitle } from '../../components/PageTitle';
import { Panel } from '../../components/Panel';
import { useMe } from '../../shell/useMay';
import classes from './AdminPage.module.css';
import { KeysPanel } from './KeysPanel';
import { PasswordPanel } from './PasswordPanel';
import { UsersPanel } from './UsersPanel';

export function AdminPage() {
  const me = useMe();
  if (me === undefined) return null;
  const isAdmin = me.role === 'admin';
  if (me.id === null) {
    return (
      <>
        <PageTitle title="Users and keys" />
        <Panel title="Nobody signs in here">
          <Empty title="Who reaches this platform may do everything">
            So there are no users and no keys. With <Code>STREAMJOIN_AUTH=on</Code> and a first admin's password in{' '}
            <Code>STREAMJOIN_ADMIN_PASSWORD</Code>, people sign in and programs show keys.
          </Empty>
        </Panel>
      </>
    );
  }
  return (
    <>
      <PageTitle title={isAdmin ? 'Users and keys' : 'Your account'} />
      <div className={classes.page}>
        {isAdmin && <UsersPanel me={me} />}
        <div className={classes.columns}>
          <KeysPanel me={me} />
          <PasswordPanel me={me} />
        </div>
      </div>
    </>
  );
}
