/** Something is on its way. */
import { Skeleton, Stack } from '@mantine/core';

export function Loading({ what, lines = 3 }: { what: string; lines?: number }) {
  return (
    <Stack gap="xs" p="md" role="status" aria-label={`Loading ${what}`}>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} height={14} width={`${String(92 - line * 17)}%`} />
      ))}
    </Stack>
  );
}
