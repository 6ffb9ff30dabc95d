/** A new key: it can be read here, once, and nowhere afterwards. */
import { Button, Checkbox, Code, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { answered, api } from '../../api/client';
import type { Me, NewApiKey, Role } from '../../api/types';
import { CheckIcon, CopyIcon } from '../../components/icons';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { copyText, REFUSED } from '../../copy';
import { createKey } from '../../recipes';
import { formErrors } from '../../shell/places';
import { rolesUpTo } from '../../shell/roles';
import classes from './NewKeyDialog.module.css';
import { RoleField } from './RoleField';

const NAME_MAX = 100;

export function NewKeyDialog({ me, onClose }: { me: Me; onClose: () => void }) {
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [role, setRole] = useState<Role>(me.role);
  const [goesOn, setGoesOn] = useState(false);
  const make = useMutation({
    mutationFn: () =>
      answered(api.POST('/api/v1/api-keys', { body: { name: name.trim(), role, ends_with_login: !goesOn } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['api-keys'] }),
    // The key itself is not to stay in memory longer than it is shown.
    gcTime: 0,
  });
  if (make.data !== undefined) return <Made made={make.data} onClose={onClose} />;
  const errors = formErrors(make.error, ['/name', '/role']);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    make.mutate();
  };
  return (
    <Modal opened onClose={onClose} title="New key">
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label="Name"
            description="what it is for, such as nightly export"
            required
            maxLength={NAME_MAX}
            data-autofocus
            value={name}
            error={errors.at['/name']}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <RoleField roles={rolesUpTo(me.role)} value={role} error={errors.at['/role']} onChange={setRole} />
          <Checkbox
            label="Goes on when I log out"
            description="for a program that runs on its own; without this, the key ends with your login"
            checked={goesOn}
            onChange={(event) => setGoesOn(event.currentTarget.checked)}
          />
          {errors.rest !== null && <ProblemView error={errors.rest} />}
          <Group justify="flex-end">
            <CopyAs recipe={createKey(name.trim() || 'NAME', role, !goesOn)} what="make this key" />
            <Button variant="default" onClick={onClose}>
              Cancel
            </Button>
            <Button type="submit" disabled={name.trim() === ''} loading={make.isPending}>
              Create key
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** Closed by its button only: nobody is to lose a key by a slip. */
function Made({ made, onClose }: { made: NewApiKey; onClose: () => void }) {
  /** Null before it was tried. */
  const [isCopied, setCopied] = useState<boolean | null>(null);
  const copy = () =>
    void copyText(made.key).then(
      () => setCopied(true),
      () => setCopied(false),
    );
  return (
    <Modal
      opened
      onClose={onClose}
      title={`The key ${made.name}`}
      closeOnClickOutside={false}
      closeOnEscape={false}
      withCloseButton={false}
    >
      <Stack>
        <Text size="sm" role="status">
          Copy it now: it is shown this once. The platform keeps only a hash, so a key that is lost is revoked, and
          another one made.{made.ends_with_login && ' It ends when you log out.'}
        </Text>
        <Code block className={classes.key}>
          {made.key}
        </Code>
        <Text size="xs" c="dimmed">
          Programs send it as <Code>Authorization: Bearer</Code>; the command line and the Python client take it from{' '}
          <Code>STREAMJOIN_API_KEY</Code>.
        </Text>
        {isCopied === false && (
          <Text size="sm" c="var(--sj-bad)" role="alert">
            {REFUSED} it: select the key and copy it by hand.
          </Text>
        )}
        <Group justify="flex-end">
          <Button
            data-autofocus
            leftSection={isCopied ? <CheckIcon /> : <CopyIcon />}
            onClick={copy}
          >
            {isCopied ? 'Copied' : 'Copy the key'}
          </Button>
          <Button variant="default" onClick={onClose}>
            Done
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
