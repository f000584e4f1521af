;;; emacs.el --- What Emacs does in place of a user  -*- lexical-binding: t; -*-

;;; Code:

(require 'package)
(require 'json)
;; As in any user's Emacs: packages are found and their autoloads loaded.
(setq package-directory-list (list (getenv "DG_TEST_PACKAGES")))
(package-initialize)
(setq lsp-session-file (expand-file-name "session" temporary-file-directory)
      lsp-auto-guess-root t
      lsp-enable-snippet nil
      lsp-enable-suggest-server-download nil
      lsp-warn-no-matched-clients nil)
(require 'dg)

(defun dg-test-until (holds)
  "Wait until HOLDS returns something, and return it."
  (let ((ends (+ (float-time) 120)) value)
    (while (and (not (setq value (funcall holds))) (< (float-time) ends))
      (accept-process-output nil 0.2))
    (or value (error "Waited in vain"))))

(defun dg-test-shown ()
  "Ask for a suggestion, and return what is shown behind the cursor."
  (lsp-inline-completion-display)
  (when (lsp-inline-completion--active-p)
    (substring-no-properties (overlay-get lsp-inline-completion--overlay 'after-string))))

(setq dg-command (json-parse-string (getenv "DG_TEST_COMMAND") :array-type 'list)
      dg-settings (json-parse-string (getenv "DG_TEST_SETTINGS") :object-type 'plist :false-object :json-false))
(find-file (getenv "DG_TEST_FILE"))
(setq-local lsp-enabled-clients '(dg))
(lsp-workspace-folders-add default-directory)
(lsp)
(dg-test-until (lambda () (and lsp--buffer-workspaces
                               (eq 'initialized (lsp--workspace-status (car lsp--buffer-workspaces))))))
(unless lsp-inline-completion-mode
  (error "Suggestions do not come by themselves"))
(goto-char (+ (point-min) (string-to-number (getenv "DG_TEST_OFFSET"))))
(let ((shown (dg-test-until #'dg-test-shown)))
  (with-temp-file "shown.json"
    (insert (json-serialize shown))))
(lsp-inline-completion-accept)
(save-buffer)
(kill-emacs 0)

;;; emacs.el ends here
