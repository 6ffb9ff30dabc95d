/** API keys: what programs show in place of a password. */
import { Button, Checkbox, Group, Table } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { apiKeysQuery, usersQuery } from '../../api/queries';
import type { ApiKey, Me } from '../../api/types';
import { Ago } from '../../components/Ago';
import { Empty } from '../../components/Empty';
import { Loading } from '../../components/Loading';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { formatCount } from '../../format';
import { useTimes } from '../../times';
import { inOrder, isOver } from './keys';
import classes from './List.module.css';
import { NewKeyDialog } from './NewKeyDialog';
import { RevokeDialog } from './RevokeDialog';

export function KeysPanel({ me }: { me: Me }) {
  const isAdmin = me.role === 'admin';
  const [ofAll, setOfAll] = useState(false);
  const [isMaking, setMaking] = useState(false);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const keys = useQuery(apiKeysQuery(isAdmin && ofAll));
  const all = keys.data?.data ?? [];
  const live = all.filter((key) => !isOver(key)).length;
  return (
    <Panel
      title="API keys"
      note={keys.data && `${formatCount(live)} in use${keys.data.has_more ? ', of the newest' : ''}`}
      actions={
        <>
          {isAdmin && (
            <Checkbox
              size="xs"
              label="of all users"
              checked={ofAll}
              onChange={(event) => setOfAll(event.currentTarget.checked)}
            />
          )}
          <Button variant="default" onClick={() => setMaking(true)}>
            New key…
          </Button>
        </>
      }
    >
      {keys.error !== null && <ProblemView error={keys.error} onRetry={() => void keys.refetch()} />}
      {keys.data === undefined ? (
        keys.isPending && <Loading what="keys" />
      ) : all.length === 0 ? (
        <Empty title="No key yet">
          A program, the command line and the Python client need one to come in: they take it from STREAMJOIN_API_KEY.
        </Empty>
      ) : (
        <KeysTable keys={inOrder(all)} withUsers={isAdmin && ofAll} onRevoke={setRevoking} />
      )}
      {isMaking && <NewKeyDialog me={me} onClose={() => setMaking(false)} />}
      {revoking !== null && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
    </Panel>
  );
}

interface KeysTableProps {
  keys: readonly ApiKey[];
  withUsers: boolean;
  onRevoke: (key: ApiKey) => void;
}

function KeysTable({ keys, withUsers, onRevoke }: KeysTableProps) {
  const users = useQuery({ ...usersQuery, enabled: withUsers });
  const times = useTimes();
  const names = new Map(users.data?.data.map((user) => [user.id, user.name]));
  return (
    <div className={classes.full}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Key</Table.Th>
            {withUsers && <Table.Th scope="col">Whose</Table.Th>}
            <Table.Th scope="col">Role</Table.Th>
            <Table.Th scope="col">Made</Table.Th>
            <Table.Th scope="col">Last use</Table.Th>
            <Table.Th scope="col">Holds until</Table.Th>
            <Table.Th scope="col" className={classes.acts}>
              State
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {keys.map((key) => (
            <Table.Tr key={key.id} className={isOver(key) ? classes.gone : undefined}>
              <Table.Th scope="row" className={classes.name}>
                {key.name}
                <span className={classes.start}>{key.start}…</span>
              </Table.Th>
              {withUsers && <Table.Td>{names.get(key.user_id) ?? key.user_id}</Table.Td>}
              <Table.Td>{key.role}</Table.Td>
              <Table.Td className={classes.time}>
                <Ago at={key.created_at} />
              </Table.Td>
              <Table.Td className={classes.time}>{key.used_at === null ? 'never' : <Ago at={key.used_at} />}</Table.Td>
              <Table.Td className={classes.time}>
                {key.expires_at === null ? 'it is revoked' : times.time(key.expires_at)}
              </Table.Td>
              <Table.Td className={classes.acts}>
                {!isOver(key) ? (
                  <Group justify="flex-end">
                    <Button variant="default" aria-label={`Revoke ${key.name}…`} onClick={() => onRevoke(key)}>
                      Revoke…
                    </Button>
                  </Group>
                ) : key.revoked_at === null ? (
                  'over'
                ) : (
                  <>
                    revoked <Ago at={key.revoked_at} />
                  </>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
