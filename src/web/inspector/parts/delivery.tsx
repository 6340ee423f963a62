import { useSignal } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import type { WebhookDelivery } from '../../../generated/schemas.ts';
import { errorOf } from '../api.ts';
import { control } from '../control.ts';
import { hrefOf } from '../routes.ts';
import { dateAndTime } from '../texts.ts';
import { isRefusal } from './sent-result.tsx';

interface DeliveryProps {
  readonly delivery: WebhookDelivery;
  /** The delivered event, or the endpoint. */
  readonly children: ComponentChildren;
  readonly onReplayed: () => void;
}

/** A delivery to a webhook endpoint with its attempts. */
export function Delivery({ delivery, children, onReplayed }: DeliveryProps) {
  const note = useSignal('');
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
  return (
    <div class="card">
      <p>
        <span class={delivery.status === 'failed' ? 'bad' : 'good'}>{delivery.status}</span> {children}
      </p>
      <ol>
        {delivery.attempts.map((attempt) => (
          <li key={attempt.attempted_at}>
            {dateAndTime(attempt.attempted_at)}: {attempt.response_status ?? attempt.error ?? 'no response'}{' '}
            after {attempt.duration_ms} ms
          </li>
        ))}
      </ol>
      {delivery.next_attempt_at !== null && (
        <p>
          Next attempt at {dateAndTime(delivery.next_attempt_at)} UTC of the{' '}
          <a href={hrefOf('clock')}>clock</a>
        </p>
      )}
      <p class="actions">
        <button type="button" onClick={replay}>
          Deliver again
        </button>
        <span role="status">{note.value}</span>
      </p>
    </div>
  );
}
