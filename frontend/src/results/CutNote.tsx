/** Says of a saved file that it has not all of an answer. */
import { Text } from '@mantine/core';
import { wordsOfCut, type Cut } from './cut';

export function CutNote({ file, cut }: { file: string; cut: Cut }) {
  return (
    <Text size="sm" role="status" px={14} py={8}>
      {wordsOfCut(file, cut)}
    </Text>
  );
}
