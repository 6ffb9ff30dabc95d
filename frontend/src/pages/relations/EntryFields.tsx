/** What a relation's entry says, field by field. */
import { PasswordInput, Select, TextInput } from '@mantine/core';
import { fieldsOf, hasPassword, SOURCES, type FieldName, type Typed } from './entry';

const EXAMPLES: Record<FieldName, [label: string, example: string, says: string]> = {
  path: ['Path', '/data/customers', 'A file, a folder or a pattern on the platform'],
  url: ['Database', 'postgresql://user@host/database', 'Without its password: everybody sees an entry'],
  table: ['Table', 'rates', 'A table or view; in PostgreSQL with its schema before it, where that is needed'],
  hosts: ['Hosts', '10.0.0.5, 10.0.0.6', 'Some nodes of the cluster'],
  keyspace: ['Keyspace', 'sales', 'That the table is in'],
  username: ['User', 'reader', 'Who logs in; empty where nobody has to'],
  refresh: ['Refresh', '10min', 'How often running jobs look for a new version; empty for only when asked'],
};

interface EntryFieldsProps {
  typed: Typed;
  onTyped: (typed: Typed) => void;
  /** There is a password already, which stays unless another is typed. */
  hasSecrets?: boolean;
}

export function EntryFields({ typed, onTyped, hasSecrets = false }: EntryFieldsProps) {
  return (
    <>
      <Select
        label="Source"
        allowDeselect={false}
        data={SOURCES}
        value={typed.source}
        onChange={(source) => onTyped({ ...typed, source: source ?? typed.source })}
      />
      {fieldsOf(typed.source).map((field) => {
        const [label, example, says] = EXAMPLES[field];
        return (
          <TextInput
            key={field}
            label={label}
            description={says}
            placeholder={example}
            autoComplete="off"
            spellCheck={false}
            value={typed[field]}
            onChange={(event) => onTyped({ ...typed, [field]: event.currentTarget.value })}
          />
        );
      })}
      {hasPassword(typed.source) && (
        <PasswordInput
          label="Password"
          description={
            hasSecrets
              ? 'The one that is kept stays where this is empty'
              : 'Of a database server: kept encrypted, and never shown again'
          }
          autoComplete="new-password"
          value={typed.password}
          onChange={(event) => onTyped({ ...typed, password: event.currentTarget.value })}
        />
      )}
    </>
  );
}
