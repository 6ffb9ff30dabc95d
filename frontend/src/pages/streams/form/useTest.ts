/** A look at a stream that need not be registered: the answer to the newest question counts, whichever comes last. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { answered, api } from '../../../api/client';
import type { Sample, Spec, StreamIn } from '../../../api/types';
import type { Secrets } from './secrets';

export type Tested = { spec: Spec } & ({ sample: Sample; error: null } | { sample: null; error: Error });

interface Asked {
  spec: Spec;
  secrets: Secrets;
}

export function useTest() {
  const [tested, setTested] = useState<Tested | null>(null);
  const asking = useMutation({
    mutationFn: ({ spec, secrets }: Asked) =>
      // What is wrong with an entry is for the platform to say.
      answered(api.POST('/api/v1/streams/test', { body: { spec: spec as StreamIn['spec'], secrets } })),
    gcTime: 0,
  });
  const test = (asked: Asked, onAnswer: (error: Error | null) => void) =>
    // These are called for the newest question only.
    asking.mutate(asked, {
      onSuccess: (sample) => {
        setTested({ spec: asked.spec, sample, error: null });
        onAnswer(null);
      },
      onError: (error) => {
        setTested({ spec: asked.spec, sample: null, error });
        onAnswer(error);
      },
    });
  return { test, tested, isPending: asking.isPending };
}
