/** All of an answer as a file. */
import { Button, Menu } from '@mantine/core';
import { FORMATS, type FileFormat } from '../../results/formats';

interface ExportMenuProps {
  isWriting: boolean;
  onExport: (format: FileFormat) => void;
}

export function ExportMenu({ isWriting, onExport }: ExportMenuProps) {
  return (
    <Menu withinPortal={false}>
      <Menu.Target>
        <Button variant="default" loading={isWriting}>
          Export
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {FORMATS.map((format) => (
          <Menu.Item key={format} onClick={() => onExport(format)}>
            All of it as {format}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}
