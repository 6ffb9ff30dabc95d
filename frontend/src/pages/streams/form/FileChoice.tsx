/** Ways to a file besides typing its path: the folders of the platform's machine, and a file of one's own. */
import { Button } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useRef, useState, type DragEvent, type ReactNode } from 'react';
import { answered, api } from '../../../api/client';
import { asProblem } from '../../../api/problem';
import { configQuery } from '../../../api/queries';
import { queryClient } from '../../../api/queryClient';
import type { FileFormat, Upload } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { ProblemView } from '../../../components/ProblemView';
import { formatBytes } from '../../../format';
import { uploadFile } from '../../../recipes';
import { BrowseDialog } from './BrowseDialog';
import classes from './FileChoice.module.css';
import { uploadName } from './uploadName';

/** A file or folder that was chosen; its format is null where its name does not tell. */
export interface Chosen {
  name: string;
  path: string;
  format: FileFormat | null;
}

interface FileChoiceProps {
  onChoose: (chosen: Chosen) => void;
  /** The fields that files may be dropped on. */
  children: ReactNode;
}

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');

export function FileChoice({ onChoose, children }: FileChoiceProps) {
  const input = useRef<HTMLInputElement>(null);
  const browse = useRef<HTMLButtonElement>(null);
  const [isBrowsing, setBrowsing] = useState(false);
  const [isOver, setOver] = useState(false);
  const [isSeveral, setSeveral] = useState(false);
  const config = useQuery(configQuery);
  const bytesMax = Number(config.data?.upload_bytes_max ?? Infinity);
  const sending = useMutation({
    mutationFn: (file: File) => send(file, bytesMax),
    onSuccess: (upload) => {
      void queryClient.invalidateQueries({ queryKey: ['uploads'] });
      onChoose(upload);
    },
    gcTime: 0,
  });
  const take = (files: FileList | null) => {
    setSeveral((files?.length ?? 0) > 1);
    const file = files?.item(0);
    if (file != null && files?.length === 1) sending.mutate(file);
  };
  const close = () => {
    setBrowsing(false);
    browse.current?.focus();
  };
  const over = (event: DragEvent, is: boolean) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    setOver(is);
  };
  return (
    <div
      className={classes.place}
      data-over={isOver}
      onDragEnter={(event) => over(event, true)}
      onDragOver={(event) => over(event, true)}
      onDragLeave={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) over(event, false);
      }}
      onDrop={(event) => {
        over(event, false);
        if (hasFiles(event)) take(event.dataTransfer.files);
      }}
    >
      {children}
      <div className={classes.ways}>
        <Button ref={browse} variant="default" onClick={() => setBrowsing(true)}>
          Browse…
        </Button>
        <Button variant="default" loading={sending.isPending} onClick={() => input.current?.click()}>
          Upload…
        </Button>
        <CopyAs recipe={uploadFile(sending.data?.name ?? 'FILE')} what="upload a file" />
        <input
          ref={input}
          type="file"
          hidden
          aria-label="File to upload"
          onChange={(event) => {
            take(event.currentTarget.files);
            event.currentTarget.value = ''; // the same file may be chosen again
          }}
        />
        <span className={classes.note} role="status">
          {isSeveral
            ? 'Upload one file at a time; a path such as upload:orders-*.csv then means all that match'
            : sending.isPending
              ? `${sending.variables.name} is on its way`
              : sending.isSuccess
                ? `${sending.data.name} is uploaded, ${formatBytes(sending.data.bytes)}`
                : `or drop a small file here${Number.isFinite(bytesMax) ? `, up to ${formatBytes(bytesMax)}` : ''}`}
        </span>
      </div>
      {sending.error !== null && <ProblemView error={sending.error} title="The file was not uploaded" />}
      {isBrowsing && (
        <BrowseDialog
          onClose={close}
          onChoose={(chosen) => {
            close();
            onChoose(chosen);
          }}
        />
      )}
    </div>
  );
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
