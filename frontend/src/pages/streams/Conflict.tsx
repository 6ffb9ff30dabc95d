/** Somebody changed the stream since it was read here: what differs, and whose entry is to stand. */
import { Alert, Button, Code, Group, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { streamQuery } from '../../api/queries';
import type { Spec, Stream } from '../../api/types';
import { Loading } from '../../components/Loading';
import { ProblemView } from '../../components/ProblemView';
import classes from './EditStreamPage.module.css';
import { differencesOf } from './differences';

interface ConflictProps {
  stream: Stream;
  mine: Spec;
  onTakeTheirs: (theirs: Stream) => void;
  onSaveMine: (theirs: Stream) => void;
}

export function Conflict({ stream, mine, onTakeTheirs, onSaveMine }: ConflictProps) {
  const read = streamQuery(stream.id);
  // Asked anew each time, and apart from the page's own.
  const theirs = useQuery({ ...read, queryKey: [...read.queryKey, 'conflict'], gcTime: 0, staleTime: 0 });
  if (theirs.error !== null) return <ProblemView error={theirs.error} />;
  if (theirs.data === undefined || theirs.isFetching) return <Loading what="the newest entry" />;
  return <Differences newest={theirs.data} {...{ stream, mine, onTakeTheirs, onSaveMine }} />;
}

function Differences({ newest, stream, mine, onTakeTheirs, onSaveMine }: ConflictProps & { newest: Stream }) {
  const place = useRef<HTMLDivElement>(null);
  useEffect(() => {
    place.current?.scrollIntoView({ block: 'nearest' });
  }, []);
  const differences = differencesOf(newest.spec, mine);
  return (
    <Alert
      ref={place}
      className={classes.conflict}
      color="red"
      variant="light"
      title="The stream was changed meanwhile"
      role="alert"
      my="xs"
    >
      <Text size="sm">
        It is at version {newest.version} now, and you began with version {stream.version}. What you typed is still
        here.
      </Text>
      {differences.length === 0 ? (
        <Text size="sm">Both entries say the same.</Text>
      ) : (
        <Table mt="xs">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Field</Table.Th>
              <Table.Th scope="col">There now</Table.Th>
              <Table.Th scope="col">Yours</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {differences.map(({ field, theirs: there, mine: here }) => (
              <Table.Tr key={field}>
                <Table.Th scope="row">{field}</Table.Th>
                <Table.Td>{there === null ? 'not there' : <Code>{there}</Code>}</Table.Td>
                <Table.Td>{here === null ? 'not there' : <Code>{here}</Code>}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      )}
      <Group gap="xs" mt="xs">
        <Button variant="default" onClick={() => onTakeTheirs(newest)}>
          Begin again with theirs
        </Button>
        <Button color="red" onClick={() => onSaveMine(newest)}>
          Save mine over it
        </Button>
      </Group>
    </Alert>
  );
}
