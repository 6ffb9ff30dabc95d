/** Ways to a file besides typing its path: the folders of the platform's machine, and a file of one's own. */
import { Button } from '@mantine/core';
import { useRef, useState, type ReactNode } from 'react';
import type { FileFormat } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { ProblemView } from '../../../components/ProblemView';
import { uploadFile } from '../../../recipes';
import { BrowseDialog } from './BrowseDialog';
import classes from './FileChoice.module.css';
import { useFileDrop } from './useFileDrop';
import { useUpload } from './useUpload';

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

export function FileChoice({ onChoose, children }: FileChoiceProps) {
  const input = useRef<HTMLInputElement>(null);
  const browse = useRef<HTMLButtonElement>(null);
  const [isBrowsing, setBrowsing] = useState(false);
  const { sending, take, words } = useUpload(onChoose);
  const { isOver, listeners } = useFileDrop(take);
  const close = () => {
    setBrowsing(false);
    browse.current?.focus();
  };
  return (
    <div className={classes.place} data-over={isOver} {...listeners}>
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
          {words}
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
