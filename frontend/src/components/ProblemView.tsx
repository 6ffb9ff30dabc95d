/** What went wrong, in the API's words, with the way out. */
import { Alert, Button, Text } from '@mantine/core';
import { asProblem } from '../api/problem';

interface ProblemViewProps {
  error: unknown;
  /** In place of the API's own, where nobody here asked for anything wrong. */
  title?: string;
  onRetry?: () => void;
}

export function ProblemView({ error, title, onRetry }: ProblemViewProps) {
  const problem = asProblem(error);
  return (
    <Alert color="red" variant="light" title={title ?? problem.title} role="alert" my="xs">
      <Text size="sm">{problem.message}</Text>
      {problem.hint !== null && <Text size="sm">{problem.hint}</Text>}
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
