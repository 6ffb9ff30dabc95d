/** Says that another order of joins would have less work by now, where `auto` chose the one that runs. */
import { Button } from '@mantine/core';
import type { Report } from '../../api/figures';
import { fieldsOfWay } from '../join/ways';
import { Notice } from './Notice';

interface OrderNoticeProps {
  report: Report | undefined;
  /** Fills the form of a change, which says what it means for the job; null for those who may not change it. */
  onTake: ((fields: Record<string, string>) => void) | null;
}

export function OrderNotice({ report, onTake }: OrderNoticeProps) {
  const order = report?.order;
  if (!order?.better) return null;
  const { better } = order;
  return (
    <Notice
      tone="good"
      title={`Another order of joins has less work by now: ${better.plan}`}
      actions={
        onTake && (
          <Button
            size="xs"
            variant="default"
            onClick={() => {
              onTake(fieldsOfWay(better, ''));
            }}
          >
            Change to this order
          </Button>
        )
      }
    >
      {order.text}. State is of one order, so a job that takes another starts anew.
    </Notice>
  );
}
