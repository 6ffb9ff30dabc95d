/** Uploads a file of one's own, if it is a single one and not too large. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { answered, api } from '../../../api/client';
import { asProblem } from '../../../api/problem';
import { configQuery } from '../../../api/queries';
import { queryClient } from '../../../api/queryClient';
import type { Upload } from '../../../api/types';
import { formatBytes } from '../../../format';
import { uploadName } from './uploadName';

export function useUpload(onUploaded: (upload: Upload) => void) {
  const [isSeveral, setSeveral] = useState(false);
  const config = useQuery(configQuery);
  const bytesMax = Number(config.data?.upload_bytes_max ?? Infinity);
  const sending = useMutation({
    mutationFn: (file: File) => send(file, bytesMax),
    onSuccess: (upload) => {
      void queryClient.invalidateQueries({ queryKey: ['uploads'] });
      onUploaded(upload);
    },
    gcTime: 0,
  });
  return {
    sending,
    take: (files: FileList | null) => {
      setSeveral((files?.length ?? 0) > 1);
      const file = files?.item(0);
      if (file != null && files?.length === 1) sending.mutate(file);
    },
    /** How it goes. */
    words: isSeveral
      ? 'Upload one file at a time; a path such as upload:orders-*.csv then means all that match'
      : sending.isPending
        ? `${sending.variables.name} is on its way`
        : sending.isSuccess
          ? `${sending.data.name} is uploaded, ${formatBytes(sending.data.bytes)}`
          : `or drop a small file here${Number.isFinite(bytesMax) ? `, up to ${formatBytes(bytesMax)}` : ''}`,
  };
}

async function send(file: File, bytesMax: number): Promise<Upload> {
  // A browser that is told so only by the platform says no more than that the connection was lost.
  if (file.size > bytesMax)
    throw asProblem(
      new Error(
        `${file.name} has ${formatBytes(file.size)}, and uploads at most ${formatBytes(bytesMax)}; put it into a folder ` +
          'that streams may read, and choose it with Browse…',
      ),
    );
  return answered(
    api.POST('/api/v1/uploads', {
      params: { query: { name: uploadName(file.name) } },
      headers: { 'Content-Type': 'application/octet-stream' },
      body: file as unknown as string,
      bodySerializer: (body: unknown) => body as Blob,
    }),
  );
}
