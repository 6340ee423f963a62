import type { SandboxApp } from '../../../sandbox/generated/schemas.ts';
import { readApi } from '../api.ts';
import { control } from '../control.ts';
import { CodeBlock } from '../parts/code-block.tsx';
import { Fact } from '../parts/fact.tsx';
import { SearchableList } from '../parts/searchable-list.tsx';
import { useLoaded } from '../parts/use-loaded.tsx';
import type { Column } from '../parts/virtual-table.tsx';
import { dateAndTime } from '../texts.ts';

const columns: readonly Column<SandboxApp>[] = [
  { title: 'Name', name: 'operation', cell: ({ name }) => name },
  { title: 'Id', name: 'wallet', cell: ({ id }) => id },
];

/** The apps of the sandbox, and the open app. */
export function Page() {
  const { value, error, reload } = useLoaded((signal) => control('listApps', {}, signal), []);
  return (
    <SearchableList
      page="apps"
      title="Apps"
      nouns={['app', 'apps']}
      searchLabel="Id or name"
      rows={value.value?.data}
      error={error.value}
      reload={reload}
      columns={columns}
      idOf={({ id }) => id}
      textsOf={({ id, name }) => [id, name]}
      detail={(id, app) =>
        app === undefined ? <p class="empty">There is no app {id}.</p> : <AppDetail key={id} app={app} />
      }
    />
  );
}

function AppDetail({ app }: { readonly app: SandboxApp }) {
  const { value, error } = useLoaded(
    (signal) => readApi('getApp', { path: { app_id: app.id } }, signal),
    [app.id],
  );
  return (
    <>
      <h2>{app.name}</h2>
      <dl>
        <Fact name="Id">{app.id}</Fact>
        <Fact name="Created">{dateAndTime(app.created_at_ms)} UTC</Fact>
      </dl>
      <h3>Settings</h3>
      <CodeBlock value={app.settings} label="Settings" />
      <h3>What clients see</h3>
      {error.value !== '' && (
        <p class="empty">The credentials of the sandbox's app do not read it: {error.value}</p>
      )}
      {value.value !== undefined && <CodeBlock value={value.value} label="What clients see" />}
    </>
  );
}
