/** What can be done with an entry: to save it, to test it, and to leave it. */
import { Button } from '@mantine/core';
import { Link } from 'react-router';
import type { Spec } from '../../../api/types';
import { CopyAs } from '../../../components/CopyAs';
import { testStream, type Recipe } from '../../../recipes';
import classes from './EntryEditor.module.css';
import type { Secrets } from './secrets';

/** How an entry is saved, in words and as a program does it. */
export interface Saving {
  saveLabel: string;
  recipe: (spec: Spec, secrets: Secrets) => Recipe;
  what: string;
  /** Where one gets without saving. */
  back: string;
}

interface EntryFootProps extends Saving {
  /** Null where it cannot be read. */
  spec: Spec | null;
  secrets: Secrets;
  isSaving: boolean;
  onTest: () => void;
}

export function EntryFoot({ spec, secrets, isSaving, onTest, saveLabel, recipe, what, back }: EntryFootProps) {
  const isUnread = spec === null;
  return (
    <div className={classes.foot}>
      <Button type="submit" size="sm" loading={isSaving} disabled={isUnread}>
        {saveLabel}
      </Button>
      {spec !== null && <CopyAs recipe={recipe(spec, secrets)} what={what} />}
      <Button
        variant="default"
        size="sm"
        disabled={isUnread}
        onClick={onTest}
        rightSection={<span className={classes.keys}>Ctrl Enter</span>}
      >
        Test
      </Button>
      {spec !== null && <CopyAs recipe={testStream(spec, secrets ?? undefined)} what="test this entry" />}
      <Button component={Link} to={back} variant="subtle" color="gray" size="sm" className={classes.back}>
        Cancel
      </Button>
    </div>
  );
}
