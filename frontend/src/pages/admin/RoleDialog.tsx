import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import type { User } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { changeUser } from '../../recipes';
import { formErrors } from '../../shell/places';
import { ROLES } from '../../shell/roles';
import { RoleField } from './RoleField';
import { useChangeUser } from './useChangeUser';

export function RoleDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const [role, setRole] = useState(user.role);
  const change = useChangeUser(user, onClose);
  const errors = formErrors(change.error, ['/role']);
  return (
    <Modal opened onClose={onClose} title={`Role of ${user.name}`}>
      <Stack>
        <RoleField roles={ROLES} value={role} error={errors.at['/role']} onChange={setRole} />
        <Text size="xs" c="dimmed">
          It holds from the next request on. Keys that have more open no more than this from now on.
        </Text>
        {errors.rest !== null && <ProblemView error={errors.rest} />}
        <Group justify="flex-end">
          <CopyAs recipe={changeUser(user.name, { role })} what="change this role" />
          <Button variant="default" onClick={onClose}>
            Cancel
          </Button>
          <Button disabled={role === user.role} loading={change.isPending} onClick={() => change.mutate({ role })}>
            Change
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
