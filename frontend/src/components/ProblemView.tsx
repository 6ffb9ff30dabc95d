/** What went wrong, in the API's words, with the way out. */
import { Alert, Button, Text } from '@mantine/core';
import { asProblem } from '../api/problem';

interface ProblemViewProps {
  error: unknown;
  /** In place of the API's own, where nobody here asked for anything wrong. */
  title?: string;
  /** What else is to be known, such as what is still shown. */
  note?: string | undefined;
  onRetry?: () => void;
}

export function ProblemView({ error, title, note, onRetry }: ProblemViewProps) {
  const problem = asProblem(error);
  return (
    <Alert color="red" variant="light" title={title ?? problem.title} role="alert" my="xs">
      <Text size="sm">{problem.message}</Text>
      {problem.hint !== null && <Text size="sm">{problem.hint}</Text>}
      {note !== undefined && <Text size="sm">{note}</Text>}
      {problem.requestId !== null && (
        <Text size="xs" c="dimmed" mt={4}>
          request {problem.requestId}
        </Text>
      )}
      {onRetry !== undefined && (
        <Button mt="xs" variant="default" onClick={onRetry}>
          Try again
        </Button>
      )}
    </Alert>
  );
}
