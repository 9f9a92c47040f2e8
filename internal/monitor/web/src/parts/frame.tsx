// What stands around every page.

import type { ComponentChildren } from 'preact';
import { logout, seen } from '../api';
import { to } from '../route';

const pages = [
  { page: 'overview', word: 'Overview' },
  { page: 'timeline', word: 'Timeline' },
  { page: 'rules', word: 'Rules' },
];

export function Frame({ page, user, children }: { page: string; user?: string; children: ComponentChildren }) {
  const skip = (event: Event) => {
    event.preventDefault();
    document.querySelector('main')?.focus();
  };
  return (
    <>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={to('overview')}>
          <img src="assets/icon.svg" alt="" width="24" height="24" /> Slipway <span>monitor</span>
        </a>
        <nav aria-label="Pages">
          <ul>
            {pages.map((one) => (
              <li key={one.page}>
                <a href={to(one.page)} aria-current={one.page === page ? 'page' : undefined}>
                  {one.word}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {user && <User name={user} />}
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <footer>
        <a href="assets/licences.txt">Licences</a>
      </footer>
    </>
  );
}

// User says as whom one reads. Through kubectl slipway ui there is no log-in, and none to end.
function User({ name }: { name: string }) {
  const leave = async () => {
    await logout();
    location.reload();
  };
  return (
    <div class="user">
      <span class="name" title={`You see what ${name} may list.`}>
        {name}
      </span>
      {!seen.throughProxy && (
        <button type="button" onClick={leave}>
          Log out
        </button>
      )}
    </div>
  );
}
