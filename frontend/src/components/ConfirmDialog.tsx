/** Asks before something is done; what changes nothing has the focus. */
import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import type { Recipe } from '../recipes';
import { CopyAs } from './CopyAs';
import { ProblemView } from './ProblemView';

interface ConfirmDialogProps {
  title: string;
  /** What happens then. */
  children: ReactNode;
  /** The word for going back. */
  keep?: string;
  /** The word for doing it. */
  act: string;
  /** It takes nothing away, so its button is not red. */
  isHarmless?: boolean;
  recipe: Recipe;
  /** What the recipe does. */
  what: string;
  /** How far the doing is, such as a mutation. */
  doing: { error: Error | null; isPending: boolean };
  onConfirm: () => void;
  onClose: () => void;
}

export function ConfirmDialog({
  title,
  children,
  keep = 'Keep it',
  act,
  isHarmless = false,
  recipe,
  what,
  doing,
  onConfirm,
  onClose,
}: ConfirmDialogProps) {
  return (
    <Modal opened onClose={onClose} title={title}>
      <Stack>
        <Text size="sm">{children}</Text>
        {doing.error !== null && <ProblemView error={doing.error} />}
        <Group justify="flex-end">
          <CopyAs recipe={recipe} what={what} />
          <Button variant="default" onClick={onClose} data-autofocus>
            {keep}
          </Button>
          <Button color={isHarmless ? undefined : 'red'} loading={doing.isPending} onClick={onConfirm}>
            {act}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
