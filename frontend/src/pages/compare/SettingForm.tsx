/** What all operators share, and the knobs that decide what each of them costs. */
import { Input, NumberInput, SegmentedControl, Select } from '@mantine/core';
import { useId } from 'react';
import { CopyAs } from '../../components/CopyAs';
import { Panel } from '../../components/Panel';
import { explainDraft } from '../../recipes';
import type { Asked } from './comparison';
import { draftOf, knobsOf, ORDERINGS, withKnob, type Knob, type Setting } from './setting';
import classes from './SettingForm.module.css';

const SLOTS_MAX = 1_024;

interface SettingFormProps {
  query: string;
  setting: Setting;
  names: readonly string[];
  /** What came of it, for each of the operators. */
  asked: readonly Asked[];
  onChange: (setting: Setting) => void;
}

export function SettingForm({ query, setting, names, asked, onChange }: SettingFormProps) {
  const order = useId();
  const mistakes = useId();
  return (
    <Panel title="How they run" note="empty fields follow the slots">
      <div className={classes.shared}>
        <NumberInput
          className={classes.slots}
          size="xs"
          label="Slots"
          min={1}
          max={SLOTS_MAX}
          value={setting.slots}
          onChange={(value) => onChange({ ...setting, slots: Number(value) || 1 })}
        />
        <Input.Wrapper size="xs" label="Order of results" labelElement="div" labelProps={{ id: order }}>
          <SegmentedControl
            size="xs"
            display="flex"
            aria-labelledby={order}
            data={[...ORDERINGS]}
            value={setting.ordering}
            onChange={(value) => onChange({ ...setting, ordering: value })}
          />
        </Input.Wrapper>
      </div>
      <div className={classes.operators}>
        {names.map((name, place) => {
          const knobs = knobsOf(name);
          if (knobs.length === 0) return null;
          const mistake = asked[place]?.mistakes?.find(({ pointer }) => pointer?.startsWith('/operator/'));
          return (
            <fieldset key={name} className={classes.operator}>
              <legend className={classes.name}>{name}</legend>
              <div className={classes.knobs}>
                {knobs.map((knob) => (
                  <KnobField
                    key={knob.name}
                    knob={knob}
                    value={setting.knobs[name]?.[knob.name]}
                    mistakeId={mistake?.pointer === `/operator/${knob.name}` ? `${mistakes}${name}` : undefined}
                    onChange={(value) => onChange(withKnob(setting, name, knob.name, value))}
                  />
                ))}
                <span className={classes.copy}>
                  <CopyAs recipe={explainDraft(draftOf(query, setting, name))} what={`explain ${name}`} />
                </span>
              </div>
              {mistake !== undefined && (
                <p id={`${mistakes}${name}`} className={classes.mistake} role="alert">
                  {mistake.detail}
                </p>
              )}
            </fieldset>
          );
        })}
      </div>
    </Panel>
  );
}

interface KnobFieldProps {
  knob: Knob;
  value: unknown;
  /** Of the words about what is wrong with it. */
  mistakeId: string | undefined;
  onChange: (value: unknown) => void;
}

function KnobField({ knob, value, mistakeId, onChange }: KnobFieldProps) {
  if (knob.choices !== undefined) {
    return (
      <Select
        className={classes.choice}
        size="xs"
        label={knob.label}
        placeholder="auto"
        clearable
        data={[...knob.choices]}
        value={typeof value === 'string' ? value : null}
        error={mistakeId !== undefined}
        aria-describedby={mistakeId}
        comboboxProps={{ withinPortal: false }}
        onChange={onChange}
      />
    );
  }
  return (
    <NumberInput
      className={classes.number}
      size="xs"
      label={knob.label}
      placeholder="auto"
      allowDecimal={false}
      value={typeof value === 'number' ? value : ''}
      error={mistakeId !== undefined}
      aria-describedby={mistakeId}
      onChange={onChange}
    />
  );
}
