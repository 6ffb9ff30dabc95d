import { Button, Group, Modal, Stack, Text } from '@mantine/core';

export function ReplaceDialog({ onClose, onReplace }: { onClose: () => void; onReplace: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Replace what you typed?">
      <Stack>
        <Text size="sm">The change that you began is not applied yet. Going back puts another one in its place.</Text>
        <Group justify="flex-end">
          <Button variant="default" onClick={onClose} data-autofocus>
            Keep it
          </Button>
          <Button color="red" onClick={onReplace}>
            Replace it
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
