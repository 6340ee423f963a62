import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { WebhookDelivery } from '../../../generated/schemas.ts';
import { errorOf } from '../api.ts';
import { control } from '../control.ts';
import { Status } from './label.tsx';
import { isRefusal } from './sent-result.tsx';
import { Timeline } from './timeline.tsx';

interface DeliveryProps {
  readonly delivery: WebhookDelivery;
  /** The delivered event, or the endpoint. */
  readonly children: ComponentChildren;
  readonly onReplayed: () => void;
}

/** A delivery to a webhook endpoint with its attempts. */
export function Delivery({ delivery, children, onReplayed }: DeliveryProps) {
  const note = useSignal('');
  const { attempts, next_attempt_at: nextMs } = delivery;
  const replay = async (): Promise<void> => {
    const path = { endpoint_id: delivery.endpoint_id, delivery_id: delivery.id };
    try {
      const sent = await control('sendRequest', { body: { operation: 'replayWebhookDelivery', path } });
      note.value = isRefusal(sent.status) ? errorOf(sent) : '';
    } catch (error) {
      note.value = (error as Error).message;
    }
    onReplayed();
  };
  const tried = attempts.map(({ attempted_at: atMs, response_status: status, error, duration_ms: ms }) => ({
    title: `${status ?? error ?? 'no response'} after ${ms} ms`,
    tone: status !== null && status >= 200 && status < 300 ? ('good' as const) : ('bad' as const),
    atMs,
  }));
  const next = nextMs === null ? [] : [{ title: 'Next attempt', tone: 'next' as const, atMs: nextMs }];
  return (
    <div class="card">
      <div>
        <Status of={delivery.status} /> {children}
      </div>
      <Timeline label="Attempts" steps={[...tried, ...next]} />
      <div class="actions">
        <button type="button" onClick={replay}>
          Deliver again
        </button>
        <span role="status">{note.value}</span>
      </div>
    </div>
  );
}
