/** What went wrong, in the API's words, with the way out. */
import { Alert, Button, Text } from '@mantine/core';
import { asProblem } from '../api/problem';

export function ProblemView({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  const problem = asProblem(error);
  return (
    <Alert color="red" variant="light" title={problem.title} role="alert" my="xs">
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
