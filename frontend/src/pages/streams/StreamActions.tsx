/** What can be done to a stream, by those who may. */
import { ActionIcon, Button, Menu } from '@mantine/core';
import { useState } from 'react';
import { Link } from 'react-router';
import type { Stream } from '../../api/types';
import { MoreIcon } from '../../components/icons';
import { useMe } from '../../shell/useMay';
import { streamPath } from './address';
import { DeleteStreamDialog } from './DeleteStreamDialog';
import { mayChange } from '../../shell/mayChange';

export function StreamActions({ stream }: { stream: Stream }) {
  const me = useMe();
  const [isDeleting, setDeleting] = useState(false);
  if (!mayChange(me, stream)) return null;
  return (
    <>
      <Button component={Link} to={`${streamPath(stream)}/edit`} variant="default">
        Edit
      </Button>
      <Menu position="bottom-end" withinPortal={false}>
        <Menu.Target>
          <ActionIcon variant="default" size={30} aria-label="More to do with this stream">
            <MoreIcon />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item onClick={() => setDeleting(true)}>Delete…</Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {isDeleting && <DeleteStreamDialog stream={stream} onClose={() => setDeleting(false)} />}
    </>
  );
}
