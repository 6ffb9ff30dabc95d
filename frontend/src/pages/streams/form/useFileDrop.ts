/** Files that are dragged from elsewhere and dropped on an element. */
import { useState, type DragEvent } from 'react';

const hasFiles = (event: DragEvent): boolean => event.dataTransfer.types.includes('Files');

export function useFileDrop(onDrop: (files: FileList) => void) {
  const [isOver, setOver] = useState(false);
  const over = (event: DragEvent, is: boolean) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    setOver(is);
  };
  return {
    /** Some are above it now. */
    isOver,
    /** What the element listens to. */
    listeners: {
      onDragEnter: (event: DragEvent) => over(event, true),
      onDragOver: (event: DragEvent) => over(event, true),
      onDragLeave: (event: DragEvent) => {
        if (!event.currentTarget.contains(event.relatedTarget as Node | null)) over(event, false);
      },
      onDrop: (event: DragEvent) => {
        over(event, false);
        if (hasFiles(event)) onDrop(event.dataTransfer.files);
      },
    },
  };
}
