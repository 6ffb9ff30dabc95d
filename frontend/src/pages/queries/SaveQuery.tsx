/** Keep a question under a name, for everybody; who may not has no button. */
import { Anchor, Button, Group, Modal, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { Link } from 'react-router';
import { answered, api } from '../../api/client';
import { savedQueriesQuery } from '../../api/queries';
import type { QueryIn } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { ProblemView } from '../../components/ProblemView';
import { keepQuestion } from '../../recipes';
import { formErrors } from '../../shell/places';
import { useMay } from '../../shell/useMay';
import { useTimes } from '../../times';
import { wordsOf } from './words';

interface SaveQueryProps {
  question: QueryIn;
  label?: string;
}

export function SaveQuery({ question, label = 'Save…' }: SaveQueryProps) {
  const [isOpen, setOpen] = useState(false);
  if (!useMay('operator')) return null;
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        {label}
      </Button>
      {isOpen && <SaveDialog question={question} onClose={() => setOpen(false)} />}
    </>
  );
}

const NAME = '/name';
const NAME_MAX = 100;

function SaveDialog({ question, onClose }: { question: QueryIn; onClose: () => void }) {
  const times = useTimes();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const keep = useMutation({
    mutationFn: () => answered(api.POST('/api/v1/saved-queries', { body: { name: name.trim(), question } })),
    onSuccess: () => client.invalidateQueries({ queryKey: savedQueriesQuery.queryKey }),
  });
  const errors = formErrors(keep.error, [NAME], NAME);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // Dialogs stand in the tree of a form at times.
    event.stopPropagation();
    keep.mutate();
  };
  return (
    <Modal opened onClose={onClose} title="Save this query">
      {keep.isSuccess ? (
        <Saved name={keep.data.name} onClose={onClose} />
      ) : (
        <form onSubmit={submit}>
          <Stack>
            <Text size="sm">
              Of <b>{question.job}</b>: {wordsOf(question, times).join('; ')}.
            </Text>
            <TextInput
              label="Name"
              description="everybody sees it under this name"
              required
              maxLength={NAME_MAX}
              data-autofocus
              value={name}
              error={errors.at[NAME]}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            {errors.rest !== null && <ProblemView error={errors.rest} />}
            <Group justify="flex-end">
              <CopyAs recipe={keepQuestion(name.trim() || 'NAME', question)} what="save this query" />
              <Button variant="default" onClick={onClose}>
                Cancel
              </Button>
              <Button type="submit" disabled={name.trim() === ''} loading={keep.isPending}>
                Save
              </Button>
            </Group>
          </Stack>
        </form>
      )}
    </Modal>
  );
}

function Saved({ name, onClose }: { name: string; onClose: () => void }) {
  return (
    <Stack>
      <Text size="sm" role="status">
        <b>{name}</b> is saved. It stands among the{' '}
        <Anchor component={Link} to="/queries" fz="sm" underline="always" onClick={onClose}>
          saved queries
        </Anchor>
        .
      </Text>
      <Group justify="flex-end">
        <Button onClick={onClose} data-autofocus>
          Close
        </Button>
      </Group>
    </Stack>
  );
}
