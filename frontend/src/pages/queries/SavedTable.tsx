/** Saved queries in rows, with what can be done to each. */
import { ActionIcon, Anchor, Button, Group, Menu, Table } from '@mantine/core';
import { Link } from 'react-router';
import type { Job, SavedQuery } from '../../api/types';
import { Ago } from '../../components/Ago';
import { CopyAs } from '../../components/CopyAs';
import { MoreIcon } from '../../components/icons';
import { askJob } from '../../recipes';
import { FORMATS, type FileFormat } from '../../results/formats';
import { useMay, useMe } from '../../shell/useMay';
import classes from './SavedTable.module.css';
import { useTimes } from '../../times';
import { questionOf, wordsOf } from './words';

interface SavedTableProps {
  saved: readonly SavedQuery[];
  /** Undefined before they are known. */
  jobs: readonly Job[] | undefined;
  asking: string | null;
  writing: string | null;
  onAsk: (kept: SavedQuery) => void;
  onExport: (kept: SavedQuery, format: FileFormat) => void;
  onForget: (kept: SavedQuery) => void;
}

export function SavedTable({ saved, ...rest }: SavedTableProps) {
  return (
    <div className={classes.full}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th scope="col">Query</Table.Th>
            <Table.Th scope="col">Job</Table.Th>
            <Table.Th scope="col">What it asks for</Table.Th>
            <Table.Th scope="col">Saved</Table.Th>
            <Table.Th scope="col" className={classes.acts}>
              What can be done
            </Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {saved.map((kept) => (
            <SavedRow key={kept.id} kept={kept} {...rest} />
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

type SavedRowProps = Omit<SavedTableProps, 'saved'> & { kept: SavedQuery };

function SavedRow({ kept, jobs, asking, writing, onAsk, onExport, onForget }: SavedRowProps) {
  const times = useTimes();
  const question = questionOf(kept);
  return (
    <Table.Tr>
      <Table.Th scope="row" className={classes.name}>
        {kept.name}
      </Table.Th>
      <Table.Td>
        <JobLink asked={question.job} jobs={jobs} />
      </Table.Td>
      <Table.Td>
        <ul className={classes.words}>
          {wordsOf(question, times).map((words) => (
            <li key={words}>{words}</li>
          ))}
        </ul>
      </Table.Td>
      <Table.Td className={classes.since}>
        <Ago at={kept.created_at} />
      </Table.Td>
      <Table.Td className={classes.acts}>
        <Group gap={6} justify="flex-end" wrap="nowrap">
          <Button
            variant="default"
            loading={asking === kept.id}
            aria-label={`Ask again: ${kept.name}`}
            onClick={() => onAsk(kept)}
          >
            Ask again
          </Button>
          <CopyAs recipe={askJob(question)} what={`ask ${kept.name}`} />
          <MoreMenu kept={kept} isWriting={writing === kept.id} onExport={onExport} onForget={onForget} />
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

interface MoreMenuProps {
  kept: SavedQuery;
  isWriting: boolean;
  onExport: (kept: SavedQuery, format: FileFormat) => void;
  onForget: (kept: SavedQuery) => void;
}

function MoreMenu({ kept, isWriting, onExport, onForget }: MoreMenuProps) {
  const me = useMe();
  const isOperator = useMay('operator');
  const isAdmin = useMay('admin');
  const isOwn = isAdmin || (isOperator && me?.id === kept.owner_id);
  return (
    <Menu position="bottom-end" withinPortal={false}>
      <Menu.Target>
        <ActionIcon
          variant="default"
          size={30}
          loading={isWriting}
          aria-label={`More to do with ${kept.name}`}
        >
          <MoreIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map((format) => (
          <Menu.Item key={format} onClick={() => onExport(kept, format)}>
            Export as {format}
          </Menu.Item>
        ))}
        <Menu.Divider />
        {isOwn ? (
          <Menu.Item onClick={() => onForget(kept)}>Delete…</Menu.Item>
        ) : (
          <Menu.Label>Its owner or an admin deletes it</Menu.Label>
        )}
      </Menu.Dropdown>
    </Menu>
  );
}

function JobLink({ asked, jobs }: { asked: string; jobs: readonly Job[] | undefined }) {
  // A query beside a job's own is asked as job:query.
  const [of = asked, query] = asked.split(':', 2);
  const job = jobs?.find(({ id, name }) => id === of || name === of);
  if (job === undefined) {
    return (
      <>
        {asked}
        {jobs !== undefined && <span className={classes.gone}>is gone</span>}
      </>
    );
  }
  return (
    <>
      <Anchor component={Link} to={`/jobs/${job.id}?tab=ask`} fz="sm">
        {job.name}
      </Anchor>
      {query !== undefined && <span className={classes.query}>{query}</span>}
    </>
  );
}
