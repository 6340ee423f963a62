import type { RecordedExchange, RecordedMessage } from '../../../sandbox/generated/schemas.ts';
import { control } from '../control.ts';
import { CodeBlock, CopyButton } from '../parts/code-block.tsx';
import { DecodedItem } from '../parts/decoded-item.tsx';
import { Prose } from '../parts/prose.tsx';
import { isRefusal } from '../parts/sent-result.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import { hrefOf } from '../routes.ts';
import { dateAndTime, shortAddress } from '../texts.ts';
import { curlCommand, testOf } from './as-curl.ts';
import { PolicyTree } from './policy-tree.tsx';
import { ReplayBox } from './replay-box.tsx';
import { signatureCheckIn } from './signature-check.ts';
import { SignatureReport } from './signature-report.tsx';

/** One request with all recorded facts. `back` is the address of the list. */
export function RequestDetail({ id, back }: { readonly id: string; readonly back: string }) {
  const { value, error } = useLoaded(
    (signal) => control('getRequest', { path: { request_id: id } }, signal),
    [id],
  );
  const exchange = value.value;
  return (
    <section class="detail" aria-label="Request">
      <p>
        <a class="back" href={back}>
          Close
        </a>
      </p>
      {error.value !== '' && <p role="alert">{error.value}</p>}
      {exchange !== undefined && <Exchange exchange={exchange} />}
    </section>
  );
}

function Exchange({ exchange }: { readonly exchange: RecordedExchange }) {
  const { method, path, operation, status, why, policy_trace: trace } = exchange;
  const check = signatureCheckIn(exchange.response.body);
  return (
    <>
      <h2>
        {operation ?? 'No operation'} <span class={isRefusal(status) ? 'bad' : 'good'}>{status}</span>
      </h2>
      <p class="target">
        {method} {path}
      </p>
      {why !== null && <Why why={why} />}
      {trace !== null && <PolicyTree trace={trace} />}
      {exchange.contract_calls.map(({ pointer, to, call }) => (
        <DecodedItem key={pointer} title={`${call.name} of ${shortAddress(to)}`} item={call} />
      ))}
      {check !== undefined && <SignatureReport check={check} />}
      <Facts exchange={exchange} />
      <p class="actions">
        <CopyButton text={() => curlCommand(exchange, location.origin)}>Copy as curl</CopyButton>
        <CopyButton text={() => testOf(exchange, location.origin)}>Copy as test</CopyButton>
      </p>
      <ReplayBox key={exchange.id} id={exchange.id} />
      <div class="messages">
        <Message title="Request" message={exchange.request} />
        <Message title="Response" message={exchange.response} />
      </div>
    </>
  );
}

function Why({ why }: { readonly why: NonNullable<RecordedExchange['why']> }) {
  const evidence = Object.entries(why.evidence).filter(([, value]) => value !== null);
  return (
    <section class="why" aria-label="Why it was refused">
      <h3>Why: {why.kind.replaceAll('_', ' ')}</h3>
      <Prose text={why.hint} />
      {evidence.length > 0 && (
        <dl>
          {evidence.map(([name, value]) => (
            <div key={name}>
              <dt>{name.replaceAll('_', ' ')}</dt>
              <Evidence value={value} />
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

function Evidence({ value }: { readonly value: unknown }) {
  const items = Array.isArray(value) ? value : [value];
  return (
    <dd>
      {items.map((item, index) => (
        <span key={index} class="item">
          {typeof item === 'string' ? item : JSON.stringify(item)}
        </span>
      ))}
    </dd>
  );
}

function Facts({ exchange }: { readonly exchange: RecordedExchange }) {
  const { received_at_ms, duration_ms, wallet_id, user_id, app_id, code } = exchange;
  const { signatures_sent: sent, authorized_by: keys, events, transaction_ids: transactions } = exchange;
  const facts: [string, string | null][] = [
    ['Received', `${dateAndTime(received_at_ms)} UTC`],
    ['Took', `${duration_ms} ms`],
    ['Error code', code],
    ['App', app_id],
    ['User', user_id],
    ['Wallet', wallet_id],
    ['Signatures', sent === 0 ? null : `${sent} sent, ${keys.length} of them authorized it`],
  ];
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value !== null && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
      {events.length > 0 && (
        <div>
          <dt>Events</dt>
          <dd>
            {events.map(({ id, type }) => (
              <a key={id} class="item" href={hrefOf('events', [id])}>
                {type}
              </a>
            ))}
          </dd>
        </div>
      )}
      {transactions.length > 0 && (
        <div>
          <dt>Transactions</dt>
          <dd>
            {transactions.map((id) => (
              <a key={id} class="item" href={hrefOf('transactions', [id])}>
                {id}
              </a>
            ))}
          </dd>
        </div>
      )}
    </dl>
  );
}

function Message({ title, message }: { readonly title: string; readonly message: RecordedMessage }) {
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <details>
        <summary>{message.headers.length} headers</summary>
        <dl class="headers">
          {message.headers.map(({ name, value }, index) => (
            <div key={index}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </details>
      {message.body === null ? (
        <p class="empty">{message.body_bytes === 0 ? 'No body.' : 'The body is not shown.'}</p>
      ) : (
        <CodeBlock value={message.body} label={`Body of the ${title.toLowerCase()}`} />
      )}
    </section>
  );
}
