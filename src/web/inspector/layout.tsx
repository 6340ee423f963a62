import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useRef } from 'preact/hooks';
import { type PageEntry, pages } from './pages.ts';
import { route } from './router.tsx';
import { hrefOf } from './routes.ts';

/** The navigation, and the page that the address names. */
export function Layout() {
  const page = useComputed(() => pages.find(({ id }) => id === route.value.page));
  const opened = useSignal<{ entry: PageEntry; Page: ComponentType } | undefined>(undefined);
  const failure = useSignal('');
  const main = useRef<HTMLElement>(null);
  useSignalEffect(() => {
    const entry = page.value;
    document.title = entry === undefined ? 'Custos' : `${entry.title} · Custos`;
    failure.value = '';
    if (entry === undefined) return;
    entry.load().then(
      ({ Page }) => {
        if (page.peek() === entry) opened.value = { entry, Page };
      },
      () => {
        failure.value = 'This page cannot be loaded. Is the sandbox still running?';
      },
    );
  });
  return (
    <>
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header class="top">
        <a class="name" href={hrefOf('requests')}>
          Custos
        </a>
        <Navigation current={page.value?.id} />
        <a class="docs" href="/docs">
          API reference
        </a>
      </header>
      <main id="main" tabIndex={-1} ref={main}>
        {failure.value !== '' && <p role="alert">{failure.value}</p>}
        {page.value === undefined && <Unknown />}
        {opened.value !== undefined && opened.value.entry === page.value && <opened.value.Page />}
      </main>
    </>
  );
}

/** The list of pages. In a narrow window, a button opens it. */
function Navigation({ current }: { readonly current: string | undefined }) {
  const isOpen = useSignal(false);
  const close = (): void => {
    isOpen.value = false;
  };
  const title = pages.find(({ id }) => id === current)?.title ?? 'Pages';
  return (
    <nav
      aria-label="Pages"
      onKeyDown={({ key }) => {
        if (key === 'Escape') close();
      }}
    >
      <button
        type="button"
        class="menu"
        aria-expanded={isOpen.value}
        aria-controls="pages"
        aria-label={`Pages, ${title} is open`}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        {title} <span aria-hidden="true">{isOpen.value ? '▴' : '▾'}</span>
      </button>
      <ul id="pages" class={isOpen.value ? 'open' : ''}>
        {pages.map(({ id, title }) => (
          <li key={id}>
            <a href={hrefOf(id)} aria-current={id === current ? 'page' : undefined} onClick={close}>
              {title}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

function Unknown() {
  return (
    <div class="page">
      <h1>There is no such page</h1>
      <p>
        <a href={hrefOf('requests')}>Requests</a>
      </p>
    </div>
  );
}
