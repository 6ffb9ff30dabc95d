/** Files and folders that streams may read, and those that were uploaded, to choose one from. */
import { ActionIcon, Button, Group, Modal, Tooltip } from '@mantine/core';
import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { answered, api } from '../../../api/client';
import { filesQuery, uploadsQuery } from '../../../api/queries';
import { queryClient } from '../../../api/queryClient';
import type { FileFormat } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { Empty } from '../../../components/Empty';
import { FilesIcon, FolderIcon, RemoveIcon } from '../../../components/icons';
import { Loading } from '../../../components/Loading';
import { ProblemView } from '../../../components/ProblemView';
import { formatBytes } from '../../../format';
import { listFiles } from '../../../recipes';
import classes from './BrowseDialog.module.css';
import type { Chosen } from './FileChoice';

/** A folder by its path, or the uploaded files; null for the list of both. */
type Place = { folder: string } | 'uploads' | null;

interface BrowseDialogProps {
  onChoose: (chosen: Chosen) => void;
  onClose: () => void;
}

export function BrowseDialog({ onChoose, onClose }: BrowseDialogProps) {
  const [place, setPlace] = useState<Place>(null);
  return (
    <Modal opened onClose={onClose} title="Choose a file or folder" size="lg">
      {place === 'uploads' ? (
        <Uploads onChoose={onChoose} onBack={() => setPlace(null)} />
      ) : (
        <Folder folder={place?.folder ?? null} onChoose={onChoose} onGo={setPlace} />
      )}
    </Modal>
  );
}

interface FolderProps {
  folder: string | null;
  onChoose: (chosen: Chosen) => void;
  onGo: (place: Place) => void;
}

function Folder({ folder, onChoose, onGo }: FolderProps) {
  const { data, error, isPending, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteQuery(
    filesQuery(folder),
  );
  const first = data?.pages[0];
  const entries = data?.pages.flatMap((page) => page.data) ?? [];
  const list = useFocus<HTMLDivElement>(folder, !isPending);
  return (
    <div className={classes.dialog}>
      <Head
        place={folder ?? 'Folders of this platform’s machine that streams may read'}
        onUp={folder === null ? null : () => onGo(first?.parent == null ? null : { folder: first.parent })}
      >
        <CopyAs recipe={listFiles(folder)} what="list these files" />
      </Head>
      {error !== null && <ProblemView error={error} />}
      {isPending && <Loading what="files" lines={6} />}
      <div ref={list} className={classes.list} tabIndex={0} role="region" aria-label="Files and folders">
        {first !== undefined && entries.length === 0 && folder !== null && (
          <Empty title="Nothing here that a stream may read" />
        )}
        <ul className={classes.entries}>
          {folder === null && (
            <Entry icon={<FilesIcon />} name="Uploaded files" note="" onClick={() => onGo('uploads')} />
          )}
          {entries.map(({ name, path, kind, format, bytes }) => (
            <Entry
              key={path}
              icon={kind === 'folder' ? <FolderIcon /> : <FilesIcon />}
              name={name}
              note={kind === 'folder' ? 'folder' : formatBytes(bytes)}
              onClick={() => (kind === 'folder' ? onGo({ folder: path }) : onChoose({ name, path, format }))}
            />
          ))}
        </ul>
        {hasNextPage && (
          <Button variant="subtle" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more
          </Button>
        )}
        {first?.is_cut === true && !hasNextPage && (
          <p className={classes.note}>The folder has more than is listed; type the path of what is missing.</p>
        )}
      </div>
      {folder !== null && first !== undefined && (
        <Group justify="flex-end">
          <Button variant="default" onClick={() => onChoose(chosenFolder(folder, entries))}>
            Use this folder
          </Button>
        </Group>
      )}
    </div>
  );
}

/** Its files are of the kind that the first of them is known to be. */
const chosenFolder = (folder: string, entries: { format: FileFormat | null }[]): Chosen => ({
  name: folder.split('/').pop() ?? '',
  path: folder,
  format: entries.find(({ format }) => format !== null)?.format ?? null,
});

function Uploads({ onChoose, onBack }: { onChoose: (chosen: Chosen) => void; onBack: () => void }) {
  const { data, error, isPending } = useQuery(uploadsQuery);
  const list = useFocus<HTMLDivElement>('uploads', !isPending);
  const removing = useMutation({
    mutationFn: (name: string) => answered(api.DELETE('/api/v1/uploads/{name}', { params: { path: { name } } })),
    onSettled: () => queryClient.invalidateQueries({ queryKey: uploadsQuery.queryKey }),
    onSuccess: () => list.current?.focus(),
    gcTime: 0,
  });
  return (
    <div className={classes.dialog}>
      <Head place="Uploaded files" onUp={onBack} />
      {error !== null && <ProblemView error={error} />}
      {removing.error !== null && <ProblemView error={removing.error} title="It was not removed" />}
      {isPending && <Loading what="uploads" lines={6} />}
      <div ref={list} className={classes.list} tabIndex={0} role="region" aria-label="Uploaded files">
        {data?.data.length === 0 && <Empty title="Nothing is uploaded yet" />}
        <ul className={classes.entries}>
          {data?.data.map((upload) => (
            <Entry
              key={upload.name}
              icon={<FilesIcon />}
              name={upload.name}
              note={formatBytes(upload.bytes)}
              onClick={() => onChoose(upload)}
            >
              {upload.read_by.length === 0 && (
                <Tooltip label="Nothing reads it">
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size={30}
                    aria-label={`Remove ${upload.name}`}
                    onClick={() => removing.mutate(upload.name)}
                  >
                    <RemoveIcon />
                  </ActionIcon>
                </Tooltip>
              )}
            </Entry>
          ))}
        </ul>
        {data?.has_more === true && <p className={classes.note}>There are more; type the path, such as upload:NAME.</p>}
      </div>
    </div>
  );
}

interface HeadProps {
  place: string;
  /** Null where nothing is above. */
  onUp: (() => void) | null;
  children?: ReactNode;
}

function Head({ place, onUp, children }: HeadProps) {
  return (
    <Group gap="xs" wrap="nowrap">
      {onUp !== null && (
        <Button variant="default" onClick={onUp}>
          Up
        </Button>
      )}
      <span className={classes.place}>{place}</span>
      {children}
    </Group>
  );
}

interface EntryProps {
  icon: ReactNode;
  name: string;
  note: string;
  onClick: () => void;
  /** What else can be done with it. */
  children?: ReactNode;
}

function Entry({ icon, name, note, onClick, children }: EntryProps) {
  return (
    <li className={classes.entry}>
      <button type="button" className={classes.name} onClick={onClick}>
        {icon}
        <span className={classes.text}>{name}</span>
        <span className={classes.note}>{note}</span>
      </button>
      {children}
    </li>
  );
}

/** The focus goes to each new list, as the button that led there is gone. */
function useFocus<Element extends HTMLElement>(of: string | null, isThere: boolean) {
  const element = useRef<Element>(null);
  useEffect(() => {
    if (isThere) element.current?.focus({ preventScroll: true });
  }, [of, isThere]);
  return element;
}
