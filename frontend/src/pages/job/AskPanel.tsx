/** Results that are kept, asked once: by time, by key, with a condition; and taken home as a file. */
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import type { Job } from '../../api/types';
import { CopyAs } from '../../components/CopyAs';
import { Empty } from '../../components/Empty';
import { Panel } from '../../components/Panel';
import { ProblemView } from '../../components/ProblemView';
import { save } from '../../download';
import { askJob } from '../../recipes';
import { exported } from '../../results/ask';
import { CutNote } from '../../results/CutNote';
import type { FileFormat } from '../../results/formats';
import { SaveQuery } from '../queries/SaveQuery';
import { AnswerPages } from './AnswerPages';
import { ExportMenu } from './ExportMenu';
import { OWN, resultsOf } from './furtherQueries';
import { OfQuery } from './OfQuery';
import { EMPTY_FORM, questionOf, withoutLimit, type AskForm } from './question';
import { QuestionForm } from './QuestionForm';
import { usePages } from './usePages';

export function AskPanel({ job }: { job: Job }) {
  const [form, setForm] = useState<AskForm>(EMPTY_FORM);
  const [of, setOf] = useState(OWN);
  const question = questionOf(resultsOf(job.name, of), form);
  const asked = usePages();
  const file = useMutation({
    mutationFn: (format: FileFormat) => exported(withoutLimit(question), format),
    onSuccess: ({ blob }, format) => save(blob, `${job.name}.${format}`),
  });
  return (
    <Panel
      title="Ask kept results"
      note="ranges include both ends; empty fields do not restrict"
      actions={
        <>
          <OfQuery job={job} of={of} onChange={setOf} />
          <SaveQuery question={question} />
          <CopyAs recipe={askJob(question)} what="ask this question" />
        </>
      }
      flush
    >
      <QuestionForm form={form} isAsking={asked.isAsking} onChange={setForm} onAsk={() => asked.ask(question)}>
        <ExportMenu isWriting={file.isPending} onExport={(format) => file.mutate(format)} />
      </QuestionForm>
      {asked.error !== null && (
        <ProblemView error={asked.error} note={asked.pages === null ? undefined : 'The earlier answer is still shown below.'} />
      )}
      {file.error !== null && <ProblemView error={file.error} />}
      {file.data?.cut && <CutNote file={`${job.name}.${file.variables}`} cut={file.data.cut} />}
      {asked.pages === null ? (
        <Empty title="Nothing asked yet" />
      ) : (
        <AnswerPages pages={asked.pages} isAsking={asked.isAsking} onTurn={asked.turnTo} />
      )}
    </Panel>
  );
}
