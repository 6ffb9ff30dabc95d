/** All users, for admins. */
import { ActionIcon, Badge, Button, Menu, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { usersQuery } from '../../api/queries';
import type { Me, User } from '../../api/types';
import { Ago } from '../../components/Ago';
import { MoreIcon } from '../../components/icons';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { AbleDialog } from './AbleDialog';
import { DeleteUserDialog } from './DeleteUserDialog';
import classes from './List.module.css';
import { NewUserDialog } from './NewUserDialog';
import { ResetDialog } from './ResetDialog';
import { RoleDialog } from './RoleDialog';

const DIALOGS = { role: RoleDialog, reset: ResetDialog, able: AbleDialog, delete: DeleteUserDialog };

interface Doing {
  what: keyof typeof DIALOGS;
  user: User;
}

export function UsersPanel({ me }: { me: Me }) {
  const users = useQuery(usersQuery);
  const [isMaking, setMaking] = useState(false);
  const [doing, setDoing] = useState<Doing | null>(null);
  const Dialog = doing === null ? null : DIALOGS[doing.what];
  return (
    <Panel
      title="Users"
      note={users.data && `${users.data.has_more ? 'the newest ' : ''}${formatCount(users.data.data.length)}`}
      actions={
        <Button variant="default" onClick={() => setMaking(true)}>
          New user…
        </Button>
      }
    >
      {users.error !== null && <ProblemView error={users.error} onRetry={() => void users.refetch()} />}
      {users.data === undefined ? (
        users.isPending && <Loading what="users" />
      ) : (
        <UsersTable me={me} users={users.data.data} onDo={setDoing} />
      )}
      {isMaking && <NewUserDialog onClose={() => setMaking(false)} />}
      {doing !== null && Dialog !== null && <Dialog user={doing.user} onClose={() => setDoing(null)} />}
    </Panel>
  );
}

interface UsersTableProps {
  me: Me;
  users: readonly User[];
  onDo: (doing: Doing) => void;
}

function UsersTable({ me, users, onDo }: UsersTableProps) {
  return (
    <div className={classes.full}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">User</Table.Th>
            <Table.Th scope="col">Role</Table.Th>
            <Table.Th scope="col">Signs in</Table.Th>
            <Table.Th scope="col">Made</Table.Th>
            <Table.Th scope="col" className={classes.acts}>
              More
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {users.map((user) => (
            <Table.Tr key={user.id} className={user.disabled ? classes.gone : undefined}>
              <Table.Th scope="row" className={classes.name}>
                {user.name}
                {user.id === me.id && <Badge className={classes.beside}>you</Badge>}
              </Table.Th>
              <Table.Td>{user.role}</Table.Td>
              <Table.Td>{user.disabled ? 'no, is disabled' : 'yes'}</Table.Td>
              <Table.Td>
                <Ago at={user.created_at} />
              </Table.Td>
              <Table.Td className={classes.acts}>
                <Menu position="bottom-end" withinPortal={false}>
                  <Menu.Target>
                    <ActionIcon variant="default" size={30} aria-label={`More to do with ${user.name}`}>
                      <MoreIcon />
                    </ActionIcon>
                  </Menu.Target>
                  <Menu.Dropdown>
                    <Menu.Item onClick={() => onDo({ what: 'role', user })}>Change role…</Menu.Item>
                    {user.id === me.id ? (
                      <Menu.Label>Your own password is changed below</Menu.Label>
                    ) : (
                      <Menu.Item onClick={() => onDo({ what: 'reset', user })}>New password…</Menu.Item>
                    )}
                    <Menu.Item onClick={() => onDo({ what: 'able', user })}>
                      {user.disabled ? 'Enable…' : 'Disable…'}
                    </Menu.Item>
                    <Menu.Item onClick={() => onDo({ what: 'delete', user })}>Delete…</Menu.Item>
                  </Menu.Dropdown>
                </Menu>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
