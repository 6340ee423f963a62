import { useEffect } from 'preact/hooks';
import type { RecordedRequest } from '../../../sandbox/generated/schemas.ts';
import { ConfirmButton } from '../parts/confirm-button.tsx';
import { isRefusal } from '../parts/sent-result.tsx';
import { type Column, VirtualTable } from '../parts/virtual-table.tsx';
import { type Filters, filterRequests, filtersIn } from '../requests/filters.ts';
import { RequestDetail } from '../requests/request-detail.tsx';
import {
  deleteRequests,
  downloadArchive,
  followRequests,
  interruption,
  requests,
} from '../requests/request-feed.tsx';
import { goTo, route, setQuery } from '../router.tsx';
import { hrefOf } from '../routes.ts';
import { timeOfDay } from '../texts.ts';

const columns: readonly Column<RecordedRequest>[] = [
  { title: 'Time', name: 'time', cell: ({ received_at_ms }) => timeOfDay(received_at_ms) },
  {
    title: 'Operation',
    name: 'operation',
    cell: ({ operation, method, path }) => operation ?? `${method} ${path}`,
  },
  { title: 'Status', name: 'status', cell: ({ status }) => status },
  { title: 'Code', name: 'code', cell: ({ code }) => code ?? '' },
  { title: 'Wallet', name: 'wallet', cell: ({ wallet_id }) => wallet_id ?? '' },
  { title: 'ms', name: 'ms', cell: ({ duration_ms }) => duration_ms.toFixed(1) },
];

/** The requests of the sandbox as they arrive, and the open request. */
export function Page() {
  useEffect(() => {
    const leaving = new AbortController();
    void followRequests(leaving.signal);
    return () => leaving.abort();
  }, []);
  const { path, query } = route.value;
  const [opened] = path;
  const filters = filtersIn(query);
  const shown = filterRequests(requests.value, filters);
  return (
    <div class={`page split ${opened === undefined ? '' : 'opened'}`}>
      <section class="list" aria-label="All requests">
        <h1>Requests</h1>
        <FilterBar filters={filters} shown={shown} recorded={requests.value.length} />
        {interruption.value !== '' && <p role="alert">{interruption.value}</p>}
        <VirtualTable
          label="Requests, newest first"
          rows={shown}
          columns={columns}
          idOf={({ id }) => id}
          opened={opened}
          open={({ id }) => goTo(hrefOf('requests', [id], query))}
          rowClass={({ status }) => (isRefusal(status) ? 'refused' : '')}
        />
        {shown.length === 0 && <Empty hasRequests={requests.value.length > 0} />}
      </section>
      {opened !== undefined && <RequestDetail id={opened} back={hrefOf('requests', [], query)} />}
    </div>
  );
}

interface FilterBarProps {
  readonly filters: Filters;
  /** The requests that match the filters. */
  readonly shown: readonly RecordedRequest[];
  /** The number of all requests, including those that do not match. */
  readonly recorded: number;
}

function FilterBar({ filters, shown, recorded }: FilterBarProps) {
  const field = (name: keyof Filters, label: string, placeholder: string) => (
    <label>
      {label}
      <input
        type="search"
        name={name}
        value={filters[name]}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        onInput={({ currentTarget }) => setQuery({ [name]: currentTarget.value })}
      />
    </label>
  );
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {field('text', 'Operation or path', 'walletRpc')}
      {field('status', 'Status', '4xx')}
      {field('code', 'Error code', 'policy_violation')}
      {field('wallet', 'Wallet', 'id')}
      <span class="count" role="status">
        {shown.length} {shown.length === 1 ? 'request' : 'requests'}
      </span>
      <ConfirmButton
        question={`Delete all ${recorded} requests${shown.length < recorded ? ', also hidden ones' : ''}?`}
        onConfirm={() => void deleteRequests()}
      >
        Delete all
      </ConfirmButton>
      <button type="button" onClick={() => void downloadArchive(shown)}>
        HAR
      </button>
    </form>
  );
}

function Empty({ hasRequests }: { readonly hasRequests: boolean }) {
  return (
    <p class="empty">
      {hasRequests
        ? 'No request matches the filters.'
        : 'No requests yet. Send one to this sandbox, and it appears here.'}
    </p>
  );
}
