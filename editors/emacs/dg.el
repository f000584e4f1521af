;;; dg.el --- Code infilling by a text-diffusion model, with lsp-mode  -*- lexical-binding: t; -*-

;; lsp-mode 10 or newer, installed as a package; it shows suggestions by itself.  C-RET takes a suggestion, C-n and C-p show others, ESC hides it.
;; M-x dg-rewrite rewrites the region, or the line, as it is told.

;;; Code:

(require 'lsp-mode)

(defvar dg-command '("dg-lsp" "serve")
  "Command line of the server.")

(defvar dg-settings nil
  "Settings of the server, a plist or hash table, as in its settings.schema.json.")

(lsp-register-client
 (make-lsp-client
  :new-connection (lsp-stdio-connection (lambda () dg-command))
  :activation-fn (lambda (_file _mode) t)
  :initialization-options (lambda () dg-settings)
  :add-on? t
  :server-id 'dg))

;;;###autoload
(defun dg-rewrite (start end instruction)
  "Rewrite the text from START to END, or else the line, as INSTRUCTION says.
Each proposal is shown in its place until it is accepted, passed over or left."
  (interactive (let ((region (use-region-p)))
                 (list (if region (region-beginning) (line-beginning-position))
                       (if region (region-end) (line-end-position))
                       (read-string "Rewrite: "))))
  (let* ((lsp-response-timeout 150) ; the server's own limit is 120 s
         (argument (list :uri (lsp--buffer-uri) :range (lsp--region-to-range start end) :instruction instruction))
         (answer (lsp-request "workspace/executeCommand"
                              (list :command "dg.rewrite" :arguments (vector argument))))
         (proposals (append (lsp-get answer :candidates) nil)))
    (deactivate-mark)
    (unless proposals
      (user-error "%s" (or (lsp-get answer :message) "The model has no proposal here")))
    (while proposals
      (let ((changes (prepare-change-group)) (key ?q))
        (unwind-protect
            (progn
              (activate-change-group changes)
              (goto-char start)
              (delete-region start end)
              (insert (lsp-get (pop proposals) :text))
              (setq key (read-char-choice (if proposals "a accepts, n shows the next, q leaves it: "
                                            "a accepts, q leaves it: ")
                                          (if proposals '(?a ?n ?q) '(?a ?q)))))
          (if (eq key ?a)
              (progn (undo-amalgamate-change-group changes)
                     (accept-change-group changes))
            (cancel-change-group changes)))
        (unless (eq key ?n)
          (setq proposals nil))))))

(provide 'dg)
;;; dg.el ends here
