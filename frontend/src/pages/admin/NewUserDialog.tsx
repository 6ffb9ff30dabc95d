import { Button, Group, Modal, PasswordInput, Stack, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { answered, api } from '../../api/client';
import { usersQuery } from '../../api/queries';
import type { Role } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { createUser } from '../../recipes';
import { formErrors } from '../../shell/places';
import { ROLES } from '../../shell/roles';
import { RoleField } from './RoleField';

export function NewUserDialog({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>('viewer');
  const [password, setPassword] = useState('');
  const create = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/users', { body: { name: name.trim(), role, password } })),
    onSuccess: async () => {
      await client.invalidateQueries({ queryKey: usersQuery.queryKey });
      onClose();
    },
  });
  const errors = formErrors(create.error, ['/name', '/role', '/password'], '/name');
  const submit = (event: FormEvent) => {
    event.preventDefault();
    create.mutate();
  };
  return (
    <Modal opened onClose={onClose} title="New user">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            description="small letters, digits and . _ @ -"
            required
            autoComplete="off"
            data-autofocus
            value={name}
            error={errors.at['/name']}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <RoleField roles={ROLES} value={role} error={errors.at['/role']} onChange={setRole} />
          <PasswordInput
            label="Password"
            description="8 characters at least. Give it to them; they can change it here"
            required
            autoComplete="new-password"
            value={password}
            error={errors.at['/password']}
            onChange={(event) => setPassword(event.currentTarget.value)}
          />
          {errors.rest !== null && <ProblemView error={errors.rest} />}
          <Group justify="flex-end">
            <CopyAs recipe={createUser(name.trim() || 'NAME', role)} what="make this user" />
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={name.trim() === '' || password === ''} loading={create.isPending}>
              Create user
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
