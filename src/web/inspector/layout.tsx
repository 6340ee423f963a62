import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import { BookOpen, ChevronRight, Menu, Search, Shield } from 'lucide';
import type { ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { absence, activeFaults, clock } from './clock-feed.ts';
import { groups, type PageEntry, pages } from './pages.ts';
import { openPalette, PaletteDialog } from './palette-dialog.tsx';
import { Icon } from './parts/icon.tsx';
import { Failure } from './parts/states.tsx';
import { isDense, setDense } from './parts/virtual-table.tsx';
import { unseen } from './requests/request-feed.tsx';
import { route } from './router.tsx';
import { hrefOf } from './routes.ts';
import { dateAndTime } from './texts.ts';

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
      <Side current={page.value?.id} />
      <main id="main" tabIndex={-1} ref={main}>
        <Failure message={failure.value} />
        {page.value === undefined && <Unknown />}
        {opened.value !== undefined && opened.value.entry === page.value && <opened.value.Page />}
      </main>
      <PaletteDialog />
    </>
  );
}

/** The groups of pages. In a narrow window, a button opens them. */
function Side({ current }: { readonly current: string | undefined }) {
  const isOpen = useSignal(false);
  const close = (): void => {
    isOpen.value = false;
  };
  const title = pages.find(({ id }) => id === current)?.title ?? 'Pages';
  useEffect(() => {
    // In a low window, the current entry may be out of sight, also because the clock takes some of the space.
    document.querySelector('#pages [aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [current, clock.value === undefined]);
  return (
    <header class="side">
      <a class="brand" href={hrefOf('home')}>
        <Icon of={Shield} /> Custos
      </a>
      <button type="button" class="find" onClick={openPalette}>
        <Icon of={Search} /> <span>Find or do…</span> <kbd>Ctrl K</kbd>
      </button>
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
        <Icon of={Menu} /> {title}
      </button>
      <nav
        id="pages"
        aria-label="Pages"
        class={isOpen.value ? 'open' : ''}
        onKeyDown={({ key }) => {
          if (key === 'Escape') close();
        }}
      >
        {groups.map((group) => (
          <details key={group.title} open>
            <summary>
              <Icon of={ChevronRight} /> {group.title}
            </summary>
            <ul>
              {group.pages.map(({ id, title: name, icon }) => (
                <li key={id}>
                  <a href={hrefOf(id)} aria-current={id === current ? 'page' : undefined} onClick={close}>
                    <Icon of={icon} /> {name}
                    {id === 'requests' && id !== current && unseen.value > 0 && (
                      <span class="new" title={`${unseen.value} new requests`}>
                        {unseen.value > 999 ? '999+' : unseen.value}
                      </span>
                    )}
                    {id === 'faults' && activeFaults.value > 0 && (
                      <span class="new warn" title={`${activeFaults.value} active fault rules`}>
                        {activeFaults.value}
                      </span>
                    )}
                  </a>
                </li>
              ))}
            </ul>
          </details>
        ))}
      </nav>
      <Foot />
    </header>
  );
}

/** Shows whether the sandbox responds, the sandbox's clock, and a switch for the height of rows. */
function Foot() {
  const now = clock.value;
  return (
    <div class="foot">
      {absence.value === '' ? (
        <span class="live">Connected</span>
      ) : (
        <span class="live away" title={absence.value}>
          No response
        </span>
      )}
      {now !== undefined && (
        <a href={hrefOf('clock')} title="The clock of the sandbox, in UTC">
          {dateAndTime(now.now_ms).slice(0, 19)} {now.frozen && '(frozen)'}
        </a>
      )}
      <label>
        <input
          type="checkbox"
          checked={isDense.value}
          onChange={({ currentTarget }) => setDense(currentTarget.checked)}
        />{' '}
        Dense rows
      </label>
      <a href="/docs" class="named">
        <Icon of={BookOpen} /> API reference
      </a>
    </div>
  );
}

function Unknown() {
  return (
    <div class="page">
      <h1>There is no such page</h1>
      <p>
        <a href={hrefOf('home')}>Home</a>
      </p>
    </div>
  );
}
